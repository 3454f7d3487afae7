/** The steps of a client's request through the platform, in the form in which the stream TRACES stores them. */
import { z } from "zod";

/** The id of a request. The client or a proxy in front of the gateway sends it, or the gateway generates it. */
export const RequestId = z.string().regex(/^[\w.:-]{1,128}$/);

/** States to people how long steps are stored: TRACES_MS and TRACES_BYTES_MAX, whichever limit comes first. */
export const STEPS_KEPT = "for three days at most, and of about the last 60,000 requests";
/** Limits the steps that are shown of one request. If there are more, the newest are shown. */
export const STEPS_SHOWN_MAX = 1_000;
/**
 * Limits the messages that TRACES keeps for one subject. A subject serves one in 256 requests, so a client that
 * repeats an id displaces the steps of only few other requests. A search reads at most this many messages.
 */
export const TRACE_MESSAGES_PER_SUBJECT_MAX = 1_000;
/** Limits the stored characters of a log line's text, and those of its error. */
export const STEP_TEXT_CHARS_MAX = 1_000;

const Step = z.object({
  /** Start of the step, in epoch ms. */
  at: z.number(),
  ms: z.number(),
  way: z.enum(["request", "call", "mail", "task", "log"]),
  /**
   * The name of the step: `GET /accounts/{account_id}/tokens` for a request, `account createToken` for a message, or
   * the text of a log line.
   */
  name: z.string(),
  /** The key of the actor that handled the message, or the key of the task. */
  key: z.string().optional(),
  /** The code of the refusal or error; absent after success. */
  error: z.string().optional(),
  /** The level of a log line. */
  level: z.string().optional(),
  /** The HTTP status of a request, and the account that it concerns; absent if unknown. */
  status: z.number().optional(),
  account: z.string().optional(),
});

const Run = z.object({
  request: RequestId,
  /** Distinguishes requests with the same id. Clients choose ids, so the id alone is not unique. */
  run: z.string(),
});

export type RequestStep = z.infer<typeof Step> & z.infer<typeof Run>;

/** One message with the steps that a process has collected for a short time. */
export const StepsMessage = z.object({ runs: z.array(Run.extend({ steps: z.array(Step) })) });
export type StepsMessage = z.infer<typeof StepsMessage>;
