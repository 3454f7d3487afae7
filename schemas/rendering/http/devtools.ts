/** Wire shapes of DevTools sessions. Their JSON has no envelope, and its names are those of the DevTools protocol. */
import { z } from "zod";
import { AccountPath } from "../../account/http/accounts.ts";
import { URL_CHARS_MAX } from "../../limits.ts";
import { Id } from "../../values.ts";
import {
  DEVTOOLS_KEEP_ALIVE_MS,
  DEVTOOLS_KEEP_ALIVE_MS_MAX,
  DEVTOOLS_KEEP_ALIVE_MS_MIN,
  LIVE_VIEW_MS,
  LIVE_VIEW_MS_MAX,
  LIVE_VIEW_MS_MIN,
} from "../devtools-limits.ts";
import { TargetId } from "../devtools-sessions.ts";
import { AllowedDomains } from "../devtools-worker.ts";

export const SessionPath = AccountPath.extend({
  session_id: Id.describe("The sessionId of the session"),
});
export const TargetPath = SessionPath.extend({ target_id: TargetId });

const Flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");

const LiveViewMs = z.coerce.number().pipe(z.int().min(LIVE_VIEW_MS_MIN).max(LIVE_VIEW_MS_MAX));
const liveViewUrlExpiresInMs = LiveViewMs.optional().describe(
  "Gives each page an address of a live view that is valid for this long",
);

/** Query parameters that both ways to start a session share. */
const beginning = {
  keep_alive: z.coerce
    .number()
    .pipe(z.int().min(DEVTOOLS_KEEP_ALIVE_MS_MIN).max(DEVTOOLS_KEEP_ALIVE_MS_MAX))
    .default(DEVTOOLS_KEEP_ALIVE_MS)
    .describe("Milliseconds that the session stays open without a client"),
  recording: Flag.describe("Accepted but has no effect"),
  lab: Flag.describe("Accepted but has no effect"),
};
export const LaunchQuery = z.strictObject(beginning);
export type LaunchQuery = z.output<typeof LaunchQuery>;
export const BeginQuery = z.strictObject({
  ...beginning,
  targets: Flag.describe("Adds the session's targets to the response"),
  liveViewUrlExpiresInMs,
});
export type BeginQuery = z.output<typeof BeginQuery>;

/**
 * In the public API, `allowedDomainSets` names presets and stored lists of hosts. They would need a service that
 * stores such lists.
 */
const NO_SETS =
  "Expected no allowedDomainSets, which are not supported: list the hosts in allowedDomains";

export const SessionGuardrails = z.strictObject({
  allowedDomains: AllowedDomains.optional().describe(
    "The only hosts that the session's pages may fetch from; a * stands for any characters",
  ),
  allowedDomainSets: z.array(z.string()).max(0, NO_SETS).optional(),
});
/**
 * The name of the header that contains guardrails as base64url of JSON, both when a session starts and when a client
 * connects.
 */
export const GUARDRAILS_HEADER = "cf-brapi-guardrails";
export const ConnectionGuardrails = z.strictObject({ mode: z.literal("readonly").optional() });

export const BeginBody = z
  .strictObject({ guardrails: SessionGuardrails.optional() })
  .meta({ example: {} });
export type BeginBody = z.output<typeof BeginBody>;

export const TargetsQuery = z.strictObject({ liveViewUrlExpiresInMs });
export type TargetsQuery = z.output<typeof TargetsQuery>;
export const NewTargetQuery = z.strictObject({
  url: z.string().max(URL_CHARS_MAX).default("about:blank").describe("The address to open"),
  liveViewUrlExpiresInMs,
});
export type NewTargetQuery = z.output<typeof NewTargetQuery>;

export const SessionsQuery = z.strictObject({
  limit: z.coerce.number().pipe(z.int().min(1).max(100)).default(100),
  offset: z.coerce.number().pipe(z.int().min(0)).default(0),
});
export type SessionsQuery = z.output<typeof SessionsQuery>;

export const LiveViewBody = z
  .strictObject({
    expiresInMs: z
      .int()
      .min(LIVE_VIEW_MS_MIN)
      .max(LIVE_VIEW_MS_MAX)
      .default(LIVE_VIEW_MS)
      .describe("Milliseconds until the address expires"),
    targetId: TargetId.optional().describe("Defaults to the first page"),
    mode: z.literal("tab", 'Expected "tab": a live view shows one page').default("tab"),
    guardrails: ConnectionGuardrails.optional().describe(
      "Accepted but has no effect: every live view is read-only",
    ),
  })
  .meta({ example: { expiresInMs: LIVE_VIEW_MS } });
export type LiveViewBody = z.output<typeof LiveViewBody>;

export const WireTarget = z.object({
  id: z.string(),
  type: z.string(),
  title: z.string(),
  url: z.string(),
  description: z.literal(""),
  webSocketDebuggerUrl: z.string(),
  devtoolsFrontendUrl: z.string().optional().describe("The address of a live view"),
});
export type WireTarget = z.infer<typeof WireTarget>;

export const WireBegun = z.object({
  sessionId: Id,
  webSocketDebuggerUrl: z.string(),
  targets: z.array(WireTarget).optional(),
});

export const WireSession = z.object({
  sessionId: Id,
  startTime: z.int().describe("Times are milliseconds since 1970"),
  lastUpdated: z.int(),
  webSocketDebuggerUrl: z.string().optional().describe("Absent once the session has ended"),
  connectionId: z.string().optional().describe("The client that connected last"),
  connectionStartTime: z.int().optional(),
  connectionEndTime: z.int().optional(),
  endTime: z.int().optional(),
  closeReason: z.int().optional(),
  closeReasonText: z.string().optional(),
});
export type WireSession = z.infer<typeof WireSession>;

export const WireStatus = z.object({ status: z.enum(["closing", "closed"]) });
export const WireMessage = z.object({ message: z.string() });

export const WireVersion = z.object({
  Browser: z.string(),
  "Protocol-Version": z.string(),
  "User-Agent": z.string(),
  "V8-Version": z.string(),
  "WebKit-Version": z.string(),
  webSocketDebuggerUrl: z.string(),
});

export const WireProtocol = z.object({
  version: z.object({ major: z.string(), minor: z.string() }),
  domains: z.array(z.looseObject({ domain: z.string() })),
});

export const WireLiveView = z.object({
  id: z.string().describe("The id of the page that the view shows"),
  devtoolsFrontendUrl: z.string().describe("An address to open in a browser"),
  webSocketDebuggerUrl: z.string(),
  options: z.object({
    mode: z.literal("tab"),
    guardrails: z.object({ mode: z.literal("readonly") }),
  }),
});
