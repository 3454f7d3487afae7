/** Parses messages from an app's process. The process runs untrusted code, so its messages are not trusted. */
import { z } from "zod";
import { AgentInspection, QueryRows } from "../../../../schemas/apps/agent-inspection.ts";
import { CloseToSend, GatewayName } from "../../../../schemas/apps/agent-sockets.ts";
import { HeaderList } from "../../../../schemas/apps/app-exchange.ts";
import type {
  FromProcess,
  ProcessError as ProcessErrorType,
} from "../../../../schemas/apps/app-process.ts";
import {
  APP_STREAM_PART_BYTES_MAX,
  APP_TOKEN_CHARS_MAX,
  OUTGOING_SECRETS_MAX,
} from "../../../../schemas/apps/limits.ts";
import { REMINDER_AT_MAX } from "../../../../schemas/limits.ts";

/**
 * Reports that the process requested an operation with invalid fields, for example because app code passed a value
 * that is not text.
 */
export interface Misasked {
  type: "misasked";
  operation: number;
}

export const MISASKED: ProcessErrorType = {
  name: "Error",
  message: "Cannot do that: an argument has the wrong type",
  refusal: "invalid_request",
};

const Bytes = z.instanceof(Uint8Array);
const Count = z.int().min(0);
const ProcessError = z.object({
  name: z.string(),
  message: z.string(),
  refusal: z.string().optional(),
  stack: z.string().optional(),
});
const Request = z.object({
  method: z.string(),
  url: z.string(),
  headers: HeaderList,
  body: Bytes.optional(),
});
const Answer = z.object({
  status: z.int(),
  headers: HeaderList,
  body: Bytes.optional(),
  stream: Count.optional(),
  lent: Count.optional(),
});
/** Limit of the characters of the reason why a stream broke off; the reason is the platform's own text. */
const STREAM_FAULT_CHARS_MAX = 100;
const Part = z.union([
  z.object({ bytes: Bytes.refine(({ length }) => length <= APP_STREAM_PART_BYTES_MAX) }),
  z.object({ isEnd: z.literal(true) }),
  z.object({ failed: z.string().max(STREAM_FAULT_CHARS_MAX) }),
]);
const To = { gateway: GatewayName, to: z.array(z.int()) };
const Action = z.union([
  z.object({
    ...To,
    frame: z.union([z.string(), Bytes]),
    isState: z.boolean().optional(),
  }),
  z.object({ ...To, close: CloseToSend }),
]);
const TurnResult = z.discriminatedUnion("type", [
  z.object({ type: z.literal("answer"), answer: Answer }),
  z.object({ type: z.literal("invoked"), result: Bytes }),
  z.object({
    type: z.literal("accept"),
    className: z.string(),
    name: z.string(),
    request: Request,
    props: Bytes.optional(),
  }),
  AgentInspection.extend({ type: z.literal("inspected") }),
  QueryRows.extend({ type: z.literal("queried") }),
  z.object({ type: z.literal("nothing"), isPending: z.boolean().optional() }),
]);
const OtherAgent = { className: z.string(), name: z.string() };
const Operation = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("fetch"),
    request: Request,
    redirect: z.enum(["follow", "error", "manual"]),
  }),
  z.object({ type: z.literal("agent.request"), ...OtherAgent, request: Request }),
  z.object({ type: z.literal("agent.invoke"), ...OtherAgent, method: z.string(), args: Bytes }),
  z.object({
    type: z.literal("rest"),
    permission: z.enum(["artifacts", "browser"]),
    namespace: z.string().optional(),
    request: Request,
  }),
  z.object({
    type: z.literal("read"),
    lent: Count,
    part: z.int().min(1),
    isLeft: z.boolean().optional(),
  }),
  z.object({ type: z.literal("identify"), token: z.string().max(APP_TOKEN_CHARS_MAX) }),
  z.object({
    type: z.literal("webhook"),
    id: z.string(),
    url: z.string(),
    payload: z.string(),
    secrets: z.array(z.string()).max(OUTGOING_SECRETS_MAX),
  }),
]);
/** Fields of a message that belongs to a turn of an agent or of the entry. */
const OfTurn = { agent: Count.optional(), turn: Count, after: Count };
const Said = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("ready"),
    classes: z.array(z.string()),
    hasEntry: z.boolean(),
    hasDefault: z.boolean(),
  }),
  z.object({ type: z.literal("broken"), error: ProcessError }),
  z.object({ type: z.literal("opened"), agent: Count, isEmpty: z.boolean().optional() }),
  z.object({ type: z.literal("unopened"), agent: Count, error: ProcessError }),
  z.object({
    type: z.literal("commit"),
    agent: Count,
    commit: Count,
    record: Bytes,
    isImage: z.boolean(),
    isGone: z.boolean().optional(),
    isEmpty: z.boolean().optional(),
    actions: z.array(Action),
    wakeAt: z.int().min(0).max(REMINDER_AT_MAX).nullable().optional(),
  }),
  z.object({ type: z.literal("act"), agent: Count, after: Count, actions: z.array(Action) }),
  z.object({ type: z.literal("finished"), ...OfTurn, result: z.unknown() }),
  z.object({ type: z.literal("refused"), ...OfTurn, error: ProcessError }),
  z.object({
    type: z.literal("part"),
    agent: Count.optional(),
    stream: Count,
    after: Count,
    part: Part,
  }),
  z.object({
    type: z.literal("operation"),
    operation: Count,
    agent: Count.optional(),
    after: Count,
    wanted: z.unknown(),
  }),
  z.object({
    type: z.literal("log"),
    agent: Count.optional(),
    level: z.enum(["debug", "info", "warn", "error"]),
    text: z.string(),
  }),
  z.object({ type: z.literal("idle"), agent: Count, after: Count, isIdle: z.boolean() }),
  z.object({ type: z.literal("pong"), number: Count }),
]);

/**
 * Parses a message. Throws if it does not have the form that the platform's own code sends. The contents of results
 * and operations may come from app code.
 */
export function readFromProcess(message: unknown): FromProcess | Misasked {
  const said = Said.parse(message);
  if (said.type === "finished") {
    const { data: result } = TurnResult.safeParse(said.result);
    if (result) return { ...said, result };
    const { agent, turn, after } = said;
    const error = { name: "TypeError", message: "Cannot read what the app answered" };
    return { type: "refused", agent, turn, after, error };
  }
  if (said.type === "operation") {
    const { data: wanted } = Operation.safeParse(said.wanted);
    return wanted ? { ...said, wanted } : { type: "misasked", operation: said.operation };
  }
  return said;
}
