/** The contract of an account's DevTools sessions. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs, Id, Sha256 } from "../values.ts";
import {
  DEVTOOLS_KEEP_ALIVE_MS_MAX,
  DEVTOOLS_KEEP_ALIVE_MS_MIN,
  LIVE_VIEWS_MAX,
} from "./devtools-limits.ts";

/** Why a session ended → the number that clients see. The first two are those of the public API. */
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

/** Id of a target, as Chromium makes them. */
export const TargetId = z.string().regex(/^[\w-]{1,64}$/, "Expected the id of a target");

/** An address that shows a page to its holder until it expires. */
export const LiveView = z.object({ hash: Sha256, targetId: TargetId, expiresAt: EpochMs });
export type LiveView = z.infer<typeof LiveView>;

export const DevtoolsSession = z.object({
  id: Id,
  startedAt: EpochMs,
  /** When its worker last reported it. */
  renewedAt: EpochMs,
  /** Set once its worker has reported it. */
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
    /** Counts a new session. `limit_reached` past the limit; repeating it with the same id changes nothing. */
    open: {
      input: DevtoolsSession.pick({ id: true, keepAliveMs: true }),
      reply: Nothing,
    },
    /** Reported by the session's worker while the session runs. A session that has ended stays so. */
    renew: { input: OfSession, reply: z.object({ hasEnded: z.boolean() }) },
    /** Notes the end. The first reason stays. */
    end: { input: OfSession.extend({ reason: CloseReason }), reply: Nothing },
    /** The running sessions, the oldest first. */
    list: { input: Nothing, reply: z.object({ sessions: z.array(DevtoolsSession) }) },
    /** A running session, or one of the latest that ended; `not_found` otherwise. */
    get: { input: OfSession, reply: DevtoolsSession },
    /** `not_found` where the session does not run. */
    addLiveView: {
      input: OfSession.extend({ view: LiveView }),
      reply: Nothing,
    },
    /** `not_found` where the view or its session is unknown or over. */
    findLiveView: { input: OfSession.extend({ hash: Sha256 }), reply: LiveView },
  },
});
