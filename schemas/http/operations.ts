/** Wire shapes of request traces, and of hosts, lanes, streams and dead letters for operators. */
import { z } from "zod";
import { RequestId } from "../request-step.ts";
import { Id } from "../values.ts";
import { listingFields } from "./listing.ts";

export const RequestPath = z.strictObject({ request_id: RequestId });
export const AccountRequestPath = z.strictObject({ account_id: Id, request_id: RequestId });

export const WireStep = z.object({
  at: z.iso.datetime(),
  ms: z.number(),
  way: z.enum(["request", "call", "mail", "task", "log"]),
  name: z
    .string()
    .describe("Method and route of the request, kind and message of a step, or the log line"),
  key: z.string().nullable().describe("The actor's key or the task's subject"),
  error: z.string().nullable().describe("Error code of the step; null if it succeeded"),
  level: z.string().nullable().describe("Level of a log line; null for other steps"),
  status: z.int().nullable().describe("HTTP status of the request; null for other steps"),
});
export type WireStep = z.input<typeof WireStep>;

export const WireTrace = z.object({
  request_id: RequestId,
  steps: WireStep.array().describe("Sorted by time, earliest first"),
});

export const WireHosts = z.object({
  hosts: z
    .object({
      id: z.string(),
      lease: z.enum(["held", "leaving", "gone"]),
      renewed_on: z.iso.datetime().nullable(),
      shards: z.int().array(),
    })
    .array(),
  unowned_shards: z.int().array().describe("Numbers of the shards that no host serves"),
});

export const WireQueues = z.object({
  lanes: z
    .object({
      kind: z.string(),
      lane: z.string(),
      waiting: z.int(),
      running: z.int(),
      oldest_on: z.iso.datetime().nullable(),
      is_full: z.boolean(),
    })
    .array(),
  mail_waiting: z.int(),
  dead_letters: z.int(),
});

export const WireStorage = z.object({
  disk_free_bytes: z.int().nullable().describe("Null if the bus runs on another machine"),
  disk_shortage: z.string().nullable(),
  streams: z
    .object({
      name: z.string(),
      messages: z.int().nullable(),
      bytes: z.int().nullable(),
      bytes_max: z.int().nullable().describe("Null if the stream has no limit"),
      refuses_when_full: z
        .boolean()
        .nullable()
        .describe(
          "True if the stream refuses writes at `bytes_max`; false if it drops its oldest messages and stays full, or has no limit; null if it has no leader",
        ),
      copies: z.int().nullable(),
      copies_behind: z.int(),
    })
    .array(),
});

export const DeadLetterPath = z.strictObject({ sequence: z.coerce.number().pipe(z.int().min(1)) });
export type DeadLetterPath = z.output<typeof DeadLetterPath>;
export const DeadLettersQuery = z.strictObject({
  after: z.coerce
    .number()
    .pipe(z.int().min(0))
    .default(0)
    .describe("Lists the letters after this number: the cursor of the previous response"),
  per_page: listingFields.per_page,
});
export type DeadLettersQuery = z.output<typeof DeadLettersQuery>;

export const WireDeadLetter = z.object({
  sequence: z.int(),
  address: z.string().describe("Kind and key of the receiver"),
  message: z.string(),
  is_task: z.boolean(),
  error: z.string(),
  tries: z.int(),
  buried_on: z.iso.datetime(),
  request_id: z.string().nullable().describe("The id of the request that sent the message"),
});
export const WireWholeDeadLetter = WireDeadLetter.extend({ input: z.unknown() });
export const DoneDeadLetter = z.object({ sequence: z.int() });
