/** The steps of a client's request through the platform, as TRACES keeps them. */
import { z } from "zod";

/** The id of a request, chosen by a proxy in front of the gateway or by the gateway. */
export const RequestId = z.string().regex(/^[\w.:-]{1,128}$/);

/** Steps that are shown of one request; of more, the newest. */
export const STEPS_SHOWN_MAX = 1_000;
/**
 * Messages that TRACES keeps of one subject, which serves one of 256 requests. A client that repeats an id pushes out the
 * steps of few others, and a search reads at most this many.
 */
export const TRACE_MESSAGES_PER_SUBJECT_MAX = 1_000;
/** Characters that are kept of a log line's text and of its error. */
export const STEP_TEXT_CHARS_MAX = 1_000;

const Step = z.object({
  /** Start of the step, in epoch ms. */
  at: z.number(),
  ms: z.number(),
  way: z.enum(["request", "call", "mail", "task", "log"]),
  /** `GET /accounts/{account_id}/tokens`, `account createToken`, or the text of a log line. */
  name: z.string(),
  /** The actor or the subject of the task. */
  key: z.string().optional(),
  /** The code of the refusal or error; absent after success. */
  error: z.string().optional(),
  /** The level of a log line. */
  level: z.string().optional(),
  /** The status of a request, and the account of an authenticated request. */
  status: z.number().optional(),
  account: z.string().optional(),
});

const Run = z.object({
  request: RequestId,
  /** Distinguishes requests with the same id: clients choose ids, so an id is not unique. */
  run: z.string(),
});

export type RequestStep = z.infer<typeof Step> & z.infer<typeof Run>;

/** The steps that one process gathered for a moment, as one message. */
export const StepsMessage = z.object({ runs: z.array(Run.extend({ steps: z.array(Step) })) });
export type StepsMessage = z.infer<typeof StepsMessage>;
