/** Messages of the actor of an account's DevTools sessions. Its key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import {
  DEVTOOLS_KEEP_ALIVE_MS_MAX,
  DEVTOOLS_KEEP_ALIVE_MS_MIN,
  LIVE_VIEWS_MAX,
} from "./devtools-limits.ts";

/**
 * The reasons why a session ended, with the numbers that clients see. The first two are the numbers of the public
 * API.
 */
export const CLOSE_REASONS = {
  NormalClosure: 1,
  BrowserIdle: 2,
  TimeLimit: 3,
  MemoryLimit: 4,
  BrowserTimeExceeded: 5,
  WorkerLost: 6,
  BrowserCrashed: 7,
  ForbiddenPage: 8,
  NotStarted: 9,
} as const;
export type CloseReason = keyof typeof CLOSE_REASONS;
export const CloseReason = z.enum(Object.keys(CLOSE_REASONS) as CloseReason[]);

/** The id of a DevTools target, in the form that Chromium creates. */
export const TargetId = z.string().regex(/^[\w-]{1,64}$/, "Expected the id of a target");

/** An address that shows a page to everyone who has the address, until it expires. */
export const LiveView = z.object({ hash: Sha256, targetId: TargetId, expiresAt: EpochMs });
export type LiveView = z.infer<typeof LiveView>;

export const DevtoolsSession = z.object({
  id: Id,
  startedAt: EpochMs,
  /** When the session's worker last reported the session. */
  renewedAt: EpochMs,
  /** Set after the first report of the session's worker. */
  isRunning: z.literal(true).optional(),
  keepAliveMs: z.int().min(DEVTOOLS_KEEP_ALIVE_MS_MIN).max(DEVTOOLS_KEEP_ALIVE_MS_MAX),
  ended: z.object({ at: EpochMs, reason: CloseReason }).optional(),
  views: z.array(LiveView).max(LIVE_VIEWS_MAX).optional(),
});
export type DevtoolsSession = z.infer<typeof DevtoolsSession>;

const OfSession = z.object({ id: Id });
const Nothing = z.object({});

export const devtoolsSessions = defineContract({
  kind: "devtools-sessions",
  messages: {
    /**
     * Adds a new session. Refuses with `limit_reached` if the account has too many. Repeating the call with the same
     * id changes nothing.
     */
    open: {
      input: DevtoolsSession.pick({ id: true, keepAliveMs: true }),
      reply: Nothing,
    },
    /**
     * From the session's worker, repeatedly while the session runs. `hasEnded` is true if the session has already
     * ended, or is unknown; a session that has ended stays ended.
     */
    renew: { input: OfSession, reply: z.object({ hasEnded: z.boolean() }) },
    /** Records the end of a session. Only the first reason is kept. */
    end: { input: OfSession.extend({ reason: CloseReason }), reply: Nothing },
    /** The running sessions, the oldest first. */
    list: { input: Nothing, reply: z.object({ sessions: z.array(DevtoolsSession) }) },
    /** Returns a running session or one of the latest ended sessions; otherwise refuses with `not_found`. */
    get: { input: OfSession, reply: DevtoolsSession },
    /** Adds a live view. Refuses with `not_found` if the session does not run. */
    addLiveView: {
      input: OfSession.extend({ view: LiveView }),
      reply: Nothing,
    },
    /** Finds a live view. Refuses with `not_found` if the view is unknown or expired, or its session does not run. */
    findLiveView: { input: OfSession.extend({ hash: Sha256 }), reply: LiveView },
  },
});
