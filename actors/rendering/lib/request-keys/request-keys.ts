/**
 * Gets the unsealed keys of stored requests of rendering jobs and crawls. A process of the role `actors` unseals
 * them, because it has the platform's key of secrets.
 */
import {
  REQUEST_KEY_SUBJECT,
  RequestKeyAnswer,
  type RequestKeyQuestion,
} from "../../../../schemas/rendering/request-key.ts";
import { ask } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

const ANSWER_MS_MAX = 5_000;
/** How long one attempt of a task waits for a host of actors that opens its key: longer than a restart takes. */
export const KEY_WAIT_MS = 60_000;
/**
 * How long it waits if hosts answer that they lack the key. A host with a new key may be among them; but the key may
 * be lost for ever, and the task occupies a worker meanwhile.
 */
export const KEY_MISSING_WAIT_MS = 5_000;
/** Pause before a task requests the key again. */
export const KEY_PAUSE_MS = 500;

/**
 * The key was not unsealed now. A later attempt may reach another process of the role `actors` that can unseal it.
 */
export class RequestKeyNotOpened extends Error {}

/** The process that answered has no key that unseals the request's key. */
export class NoRequestKey extends RequestKeyNotOpened {}

export class RequestKeys {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /**
   * Resolves to the unsealed key. All errors let the task retry: while the platform's key is rotated, the process
   * that answered may lack a key that the others have.
   */
  async open(question: RequestKeyQuestion): Promise<string> {
    const payload = JSON.stringify(question);
    const asked = await ask(this.#bus, REQUEST_KEY_SUBJECT, payload, { timeoutMs: ANSWER_MS_MAX });
    if (typeof asked === "string")
      throw new RequestKeyNotOpened("Cannot open request of a job: no actors answer");
    const answer = RequestKeyAnswer.parse(JSON.parse(asked.answer.string()));
    if ("key" in answer) return answer.key;
    throw new NoRequestKey(
      "Cannot run job: no host of actors that answered has the key of its request",
    );
  }
}

/**
 * Calls `open`, and repeats it while no host of actors opens the key: for KEY_WAIT_MS if none answers, and for
 * KEY_MISSING_WAIT_MS if those that answer lack it. Otherwise a restart of the only
 * host, or a host that lacks a new key, would cost all attempts of a task.
 */
export async function untilKeyOpens<T>(
  clock: Pick<Clock, "monotonic" | "wait">,
  open: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const since = clock.monotonic();
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const waitMs = error instanceof NoRequestKey ? KEY_MISSING_WAIT_MS : KEY_WAIT_MS;
      const isOver = clock.monotonic() - since > waitMs;
      if (!(error instanceof RequestKeyNotOpened) || isOver) throw error;
      await clock.wait(KEY_PAUSE_MS, signal);
      signal.throwIfAborted();
    }
  }
}
