/** Runs the jobs of accounts. A job runs like its synchronous call, but its response is stored. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_RUN_MS_MAX, TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import {
  type AnswerForm,
  answerFormOf,
  inForm,
  type RenderCall,
  requestOf,
} from "../../../../schemas/rendering/http/render-calls.ts";
import {
  RENDER_JOB_CHECK_MS,
  RENDER_JOB_RESERVED_BYTES,
  RENDER_JOBS_ACCOUNT_SHARE,
} from "../../../../schemas/rendering/limits.ts";
import {
  jobErrorOf,
  renderJobs,
  requestObjectOf,
  resultObjectOf,
} from "../../../../schemas/rendering/render-jobs.ts";
import { decryptRequest } from "../../../../schemas/rendering/request-key.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { ObjectStore } from "../../../runtime/store/object-store.ts";
import {
  type Envelopes,
  envelopesOf,
  type TaskContext,
} from "../../../runtime/workers/define-worker.ts";
import { tryAgain } from "../../../runtime/workers/task-faults.ts";
import {
  NoRequestKey,
  type RequestKeys,
  untilKeyOpens,
} from "../../lib/request-keys/request-keys.ts";
import { failed } from "./render-tasks.ts";

/**
 * The time that a task still has after its page's deadline, to close the page, store the result and report the end. A
 * task that exceeds TASK_RUN_MS_MAX itself loses its browser time and leaves a dead letter.
 */
export const JOB_STORING_MS = 30_000;

/** The result of a call's handler. */
interface Answered {
  reply: { browserMs: number; bytes: number | null; status?: number | undefined };
  chunks?: AsyncIterable<Uint8Array>;
  tell?: Envelopes;
}

/** The handlers of all calls. Each takes its own type of parameters. */
type Handlers = Record<RenderCall, (input: never, task: TaskContext) => Promise<Answered>>;

interface JobTasksParts {
  objects: Pick<ObjectStore, "get" | "put" | "remove" | "capacity">;
  requestKeys: Pick<RequestKeys, "open">;
  clock: Clock;
  handlers: Handlers;
}

/** Identifies a job: its account and its id. */
interface Job {
  account: string;
  id: string;
}

export class JobTasks {
  readonly #parts: JobTasksParts;

  constructor(parts: JobTasksParts) {
    this.#parts = parts;
  }

  async run({ id }: { id: string }, task: TaskContext): Promise<{ send: readonly Envelope[] }> {
    // The deadline is computed before `begin`, because the task's own time limit has started by then, and `begin` may
    // take long.
    const endsAt = this.#parts.clock.monotonic() + TASK_RUN_MS_MAX - JOB_STORING_MS;
    const job = { account: task.key, id };
    const ofTask = { id, task: task.id };
    const begun = await task.call(renderJobs, job.account, "begin", ofTask);
    if (!begun.isWanted) return { send: [] };
    const { call, cacheTtlS, requestKey } = begun;
    const cancelled = new AbortController();
    const finished = new AbortController();
    void this.#watch(job, task, cancelled, finished.signal);
    try {
      const signal = AbortSignal.any([task.signal, cancelled.signal]);
      const parameters = await this.#parametersOf(job, { call, requestKey }, { ...task, signal });
      const input = { account: job.account, parameters, endsAt, cacheTtlS };
      const answered = await this.#parts.handlers[call](input as never, { ...task, signal });
      const form = answerFormOf(call, parameters);
      const result = await this.#store(job, task, { form, call, answered });
      const ended = envelope(renderJobs, job.account, "ended", { ...ofTask, result });
      // Nobody waits for the messages of a job, so all of them are mail.
      return { send: [...envelopesOf(answered.tell), ended] };
    } catch (error) {
      // A page that takes too long is no fault of the platform. The job is reported as failed, because rejecting with
      // this code would leave a dead letter.
      const isLate = error instanceof ActorError && error.code === "deadline_exceeded";
      if (!isLate || task.signal.aborted) throw error;
      return { send: jobFailed({ id }, error, task) };
    } finally {
      finished.abort(OVER);
      // Closes the page if the store did not read the whole response.
      cancelled.abort(OVER);
    }
  }

  async purge({ objects }: { objects: readonly string[] }): Promise<Record<never, never>> {
    for (const name of objects) await this.#parts.objects.remove(name).catch(tryAgain);
    return {};
  }

  /** Reads and parses the stored request. It is validated again, because an older version may have written it. */
  async #parametersOf(
    { account, id }: Job,
    { call, requestKey }: { call: RenderCall; requestKey: string | undefined },
    { attempt, signal }: Pick<TaskContext, "attempt" | "signal">,
  ) {
    const stored = await this.#parts.objects
      .get(requestObjectOf(account, id), signal)
      .catch(tryAgain);
    if (!stored) throw new ActorError("not_found", "Cannot run job: its request is missing");
    const chunks = await Array.fromAsync(stored.chunks).catch(tryAgain);
    const bytes = Buffer.concat(chunks);
    const { clock, requestKeys } = this.#parts;
    const open = (sealed: string) =>
      untilKeyOpens(clock, () => requestKeys.open({ account, job: id, sealed }), signal);
    const request =
      requestKey === undefined
        ? bytes
        : await decryptRequest(
            bytes,
            await open(requestKey).catch((error) => throwAt(attempt, error)),
          );
    const text = Buffer.from(request).toString();
    const { success, data } = requestOf(call).safeParse(JSON.parse(text));
    if (!success)
      throw new ActorError("invalid_request", "Cannot run job: its request is outdated");
    return data as Parameters<typeof answerFormOf>[1];
  }

  /** Stores a response in the form that a client receives. If the store refuses it, rejects with the browser time. */
  async #store(
    { account, id }: Job,
    task: TaskContext,
    { form, call, answered }: { form: AnswerForm; call: RenderCall; answered: Answered },
  ) {
    const { objects } = this.#parts;
    const { reply, chunks = none() } = answered;
    const bytesMax = Math.floor(
      (await objects.capacity().catch(tryAgain)) * RENDER_JOBS_ACCOUNT_SHARE,
    );
    const reserve = async (bytes: number) => {
      await task.call(renderJobs, account, "reserve", { id, task: task.id, bytes, bytesMax });
    };
    const object = resultObjectOf(account, id, form.extension);
    const { mediaType, before, after } = form;
    const known = reply.bytes === null ? undefined : before.length + reply.bytes + after.length;
    const description = `${call}: ${mediaType}`;
    try {
      const content = reserved(inForm(form, chunks), known, reserve);
      const bytes = await objects.put(object, content, { description });
      const { browserMs, status } = reply;
      const target = status === undefined ? {} : { targetStatus: status };
      return { object, bytes, mediaType, browserMs, ...target };
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      const { code, message, details } = error;
      throw new ActorError(code, message, { browserMs: reply.browserMs, ...details });
    }
  }

  /**
   * Checks periodically whether the job was cancelled, and then aborts `cancelled`. If the actor is unreachable, the
   * next check follows later.
   */
  async #watch(
    { account, id }: Job,
    task: TaskContext,
    cancelled: AbortController,
    finished: AbortSignal,
  ): Promise<void> {
    for (;;) {
      await this.#parts.clock.wait(RENDER_JOB_CHECK_MS, finished);
      if (finished.aborted) return;
      const asked = { id, task: task.id };
      const found = await task.call(renderJobs, account, "check", asked).catch(() => undefined);
      if (found?.isWanted !== false) continue;
      cancelled.abort(new ActorError("cancelled", "Cannot finish job: it was cancelled"));
      return;
    }
  }
}

/**
 * Throws the error, so that the task is retried. If the key is still missing at the last attempt, throws a refusal
 * that states this.
 */
function throwAt(attempt: number, error: unknown): never {
  const isLast = error instanceof NoRequestKey && attempt >= TASK_TRIES_MAX;
  throw isLast ? new ActorError("internal_error", error.message) : error;
}

/** Returns the messages that report a failed job and its browser time. */
export function jobFailed(
  { id }: { id: string },
  error: ActorError,
  { id: task, key }: { id: string; key: string },
): Envelope[] {
  const ended = envelope(renderJobs, key, "ended", { id, task, error: jobErrorOf(error) });
  return [...failed({ account: key }, error, { id: task }), ended];
}

/**
 * Reserves bytes in the job before they are passed on: all together if their number is known, otherwise as they
 * arrive.
 */
async function* reserved(
  chunks: AsyncIterable<Uint8Array>,
  known: number | undefined,
  reserve: (bytes: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let [passed, held] = [0, known ?? 0];
  if (held > 0) await reserve(held);
  for await (const chunk of chunks) {
    passed += chunk.length;
    if (passed > held) {
      held = passed + RENDER_JOB_RESERVED_BYTES;
      await reserve(held);
    }
    yield chunk;
  }
}

async function* none(): AsyncGenerator<Uint8Array> {}
