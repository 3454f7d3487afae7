/**
 * Requests from gateways to the worker that runs a DevTools session, and their responses, as NATS core messages. If
 * no process subscribes to a session's subject, its worker is gone or the session is still starting.
 */
import { z } from "zod";
import { ERRORS, type ErrorCode } from "../errors.ts";
import { EpochMs, Id } from "../values.ts";
import { DEVTOOLS_DOMAINS_MAX } from "./devtools-limits.ts";
import { TargetId } from "./devtools-sessions.ts";

/**
 * The subject for starting a session. Workers with room for one more session of any account subscribe to it as a queue
 * group, so one of them gets each request.
 */
export const DEVTOOLS_OPEN = "devtools.open";
/**
 * The subject for starting a session if no worker subscribes to DEVTOOLS_OPEN. Workers with room for one more session
 * subscribe to it, even if an account there has its share of the sessions already.
 */
export const DEVTOOLS_OPEN_SHARED = "devtools.open.shared";
export const sessionSubject = (session: string) => `devtools.session.${session}`;
/** The subjects for the two directions of one WebSocket's frames. */
export const linkSubjects = (link: string) => ({
  toGateway: `devtools.link.${link}.gateway`,
  toWorker: `devtools.link.${link}.worker`,
});

/** A pattern for host names, such as `*.example.com`: at most one `*`, at any position. */
export const DomainPattern = z
  .string()
  .max(255)
  .regex(/^[\w.:[\]-]*\*?[\w.:[\]-]*$/, "Expected a host name with at most one *")
  .min(1);
export const AllowedDomains = z.array(DomainPattern).max(DEVTOOLS_DOMAINS_MAX);

export const OpenSession = z.object({
  id: Id,
  account: Id,
  keepAliveMs: z.int(),
  allowedDomains: AllowedDomains.optional(),
});
export type OpenSession = z.infer<typeof OpenSession>;

export const SessionRequest = z.discriminatedUnion("ask", [
  /** Connects a WebSocket: to the browser, or to one target. */
  z.object({
    ask: z.literal("connect"),
    link: Id,
    targetId: TargetId.optional(),
    isReadOnly: z.boolean(),
  }),
  z.object({ ask: z.literal("state") }),
  z.object({ ask: z.literal("version") }),
  z.object({ ask: z.literal("targets") }),
  z.object({ ask: z.literal("newTarget"), url: z.string() }),
  z.object({ ask: z.literal("activateTarget"), targetId: TargetId }),
  z.object({ ask: z.literal("closeTarget"), targetId: TargetId }),
  z.object({ ask: z.literal("end") }),
]);
export type SessionRequest = z.input<typeof SessionRequest>;

export const Target = z.object({
  id: z.string(),
  type: z.string(),
  title: z.string(),
  url: z.string(),
});
export type Target = z.infer<typeof Target>;

/** The schemas of a worker's replies, by request. */
export const SESSION_REPLIES = {
  connect: z.object({}),
  /** The client that connected last. */
  state: z.object({
    connection: z.object({ id: Id, startedAt: EpochMs, endedAt: EpochMs.optional() }).optional(),
  }),
  version: z.object({
    product: z.string(),
    protocolVersion: z.string(),
    revision: z.string(),
    userAgent: z.string(),
    jsVersion: z.string(),
  }),
  targets: z.array(Target),
  newTarget: Target,
  activateTarget: z.object({}),
  closeTarget: z.object({}),
  end: z.object({}),
} as const;
export type SessionReplies = {
  [K in keyof typeof SESSION_REPLIES]: z.infer<(typeof SESSION_REPLIES)[K]>;
};

const REFUSALS = Object.keys(ERRORS) as ErrorCode[];
export const WorkerAnswer = z.union([
  z.object({ reply: z.unknown() }),
  z.object({ refusal: z.object({ code: z.enum(REFUSALS), message: z.string() }) }),
]);
export type WorkerAnswer = z.infer<typeof WorkerAnswer>;
