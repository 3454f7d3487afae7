import { once } from "node:events";
import { expect } from "chai";
import { ActorError } from "../../../../schemas/errors.ts";
import { TASK_RUN_MS_MAX, TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import { RENDER_JOB_RESERVED_BYTES } from "../../../../schemas/rendering/limits.ts";
import {
  type JobResult,
  renderJobs,
  requestObjectOf,
} from "../../../../schemas/rendering/render-jobs.ts";
import {
  encryptRequest,
  newRequestKey,
  type RequestKeyQuestion,
} from "../../../../schemas/rendering/request-key.ts";
import { MemoryObjects } from "../../../../scripts/testing/memory-objects.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import {
  KEY_MISSING_WAIT_MS,
  KEY_PAUSE_MS,
  KEY_WAIT_MS,
  NoRequestKey,
  RequestKeyNotOpened,
} from "../../lib/request-keys/request-keys.ts";
import { JOB_STORING_MS, JobTasks } from "./job-tasks.ts";

const ACCOUNT = "a".repeat(32);
const ID = "1".repeat(32);
const MIB = 1024 * 1024;
/** Where the clock that does not jump stands when a job starts. */
const STARTED = 1_000;
const KEY = newRequestKey();

/** A job whose PDF consists of these pieces. It records the calls of its worker to the account's jobs. */
class Scene {
  readonly objects = new MemoryObjects();
  readonly asked: { message: string; bytes?: number }[] = [];
  isWanted = true;
  /** How long `begin` takes, by the clock of the job. */
  beginMs = 0;
  begunMs = 0;
  /** The deadline that the handler of the call was given. */
  endsAt: number | undefined;
  refusal: ActorError | undefined;
  /** The signal that the handler of the call received. */
  signal: AbortSignal | undefined;
  request: object = { html: "x" };
  /** Whether the stored request is encrypted; false for a job of an older version. */
  isSealed = true;
  openKey = () => KEY;
  /** The pauses between requests for the key, which take no time here. */
  readonly keyPauses: number[] = [];
  readonly #pieces: AsyncIterable<Uint8Array>;
  readonly #bytes: number | null;

  constructor(pieces: AsyncIterable<Uint8Array>, bytes: number | null) {
    this.#pieces = pieces;
    this.#bytes = bytes;
  }

  async run(task: Partial<TaskContext> = {}) {
    const request = Buffer.from(JSON.stringify(this.request));
    const stored = this.isSealed ? await encryptRequest(request, KEY) : request;
    await this.objects.putBytes(requestObjectOf(ACCOUNT, ID), stored);
    const pdf = async (input: { endsAt: number }, { signal }: TaskContext) => {
      this.signal = signal;
      this.endsAt = input.endsAt;
      return { reply: { browserMs: 7, bytes: this.#bytes }, chunks: this.#pieces };
    };
    const handlers = new Proxy({}, { get: () => pdf }) as never;
    const requestKeys = {
      open: async (question: RequestKeyQuestion) => {
        expect(question).to.deep.equal({ account: ACCOUNT, job: ID, sealed: "sealed key" });
        return this.openKey();
      },
    };
    let skippedMs = 0;
    const clock: Clock = {
      ...systemClock,
      monotonic: () => STARTED + this.begunMs + skippedMs,
      wait: async (ms, signal) => {
        if (ms !== KEY_PAUSE_MS) return systemClock.wait(ms, signal);
        skippedMs += ms;
        this.keyPauses.push(ms);
      },
    };
    const shared = { objects: this.objects, requestKeys, clock };
    const jobs = new JobTasks({ ...shared, handlers });
    const call = (async (_: unknown, key: string, message: string, input: { bytes?: number }) => {
      expect(key).to.equal(ACCOUNT);
      this.asked.push({ message, ...(input.bytes !== undefined && { bytes: input.bytes }) });
      if (message === "begin") this.begunMs += this.beginMs;
      const sealed = this.isSealed ? { requestKey: "sealed key" } : {};
      const begun = { isWanted: this.isWanted, call: "pdf", cacheTtlS: 0, ...sealed };
      if (message === "begin") return begun;
      if (message === "reserve" && this.refusal) throw this.refusal;
      return { isWanted: this.isWanted };
    }) as never;
    return await jobs.run({ id: ID }, taskContext({ key: ACCOUNT, call, ...task }));
  }
}

describe("JobTasks", () => {
  it("run() stores the answer and reports it; a job that is not wanted opens no page", async () => {
    const scene = new Scene(pieces(3, 10), 30);
    const { send } = await scene.run();
    expect(scene.asked).to.deep.equal([{ message: "begin" }, { message: "reserve", bytes: 30 }]);
    const { message, key, input } = send[0] ?? {};
    expect([message, key]).to.deep.equal(["ended", ACCOUNT]);
    const { result } = input as { result: JobResult };
    expect(result).to.deep.equal({
      ...{ object: `${ACCOUNT}/${ID}.pdf`, bytes: 30, mediaType: "application/pdf", browserMs: 7 },
    });
    expect(scene.objects.objects.get(result.object)?.length).to.equal(30);
    // The message is valid for the contract of the account's jobs.
    expect(() => renderJobs.messages.ended.input.parse(input)).to.not.throw();
    const unwanted = new Scene(pieces(1, 1), 1);
    unwanted.isWanted = false;
    expect(await unwanted.run()).to.deep.equal({ send: [] });
    expect(unwanted.signal).to.equal(undefined);
  });

  it("run() reserves ahead if the size is unknown, and never less than it stores", async () => {
    const scene = new Scene(pieces(20, MIB), null);
    await scene.run();
    const reserved = scene.asked.flatMap(({ bytes }) => bytes ?? []);
    expect(reserved).to.deep.equal([
      MIB + RENDER_JOB_RESERVED_BYTES,
      MIB + RENDER_JOB_RESERVED_BYTES + MIB + RENDER_JOB_RESERVED_BYTES,
    ]);
  });

  it("run() rejects with the browser time if the result has no room, and stores nothing", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    scene.refusal = new ActorError("limit_reached", "Cannot store result: no room");
    const refused = await refusalOf(scene.run());
    expect([refused.code, refused.details]).to.deep.equal(["limit_reached", { browserMs: 7 }]);
    expect([...scene.objects.objects.keys()]).to.deep.equal([requestObjectOf(ACCOUNT, ID)]);
  });

  it("run() closes the page of an unread answer if the store is away", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    scene.objects.put = async () => {
      throw new Error("the bus is away");
    };
    const error = await scene.run().catch((reason) => reason);
    expect(error).to.not.be.instanceOf(ActorError);
    expect(error.message).to.equal("the bus is away");
    expect(scene.signal?.aborted).to.equal(true);
  });

  it("run() ends its page JOB_STORING_MS before the task, however long begin() takes", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    scene.beginMs = 50;
    await scene.run();
    expect(scene.endsAt).to.equal(STARTED + TASK_RUN_MS_MAX - JOB_STORING_MS);
  });

  it("run() fails a job whose page is past its deadline, with its browser time and no dead letter", async () => {
    const late = new ActorError("deadline_exceeded", "Cannot print the page", { browserMs: 99 });
    const scene = new Scene(broken(late), null);
    const { send } = await scene.run();
    const used = { ms: 99, taskId: "task" };
    const error = { code: late.code, message: late.message, details: { browserMs: 99 } };
    expect(send.map(({ kind, message, input }) => [kind, message, input])).to.deep.equal([
      [browserTime.kind, "used", used],
      [renderJobs.kind, "ended", { id: ID, task: "task", error }],
    ]);
    // If the task itself is aborted, the error is thrown, and the host ends the task as usual.
    const signal = AbortSignal.abort(late);
    const ended = new Scene(broken(late), null);
    expect((await refusalOf(ended.run({ signal }))).code).to.equal("deadline_exceeded");
  });

  it("run() aborts the page of a job that is cancelled", async () => {
    const scene: Scene = new Scene(
      untilAborted(() => scene.signal),
      null,
    );
    const running = scene.run();
    running.catch(() => {});
    await until("it has begun", () => scene.asked.some(({ message }) => message === "reserve"));
    scene.isWanted = false;
    expect((await refusalOf(running)).code).to.equal("cancelled");
    expect([...scene.objects.objects.keys()]).to.deep.equal([requestObjectOf(ACCOUNT, ID)]);
  });

  it("run() refuses a missing request, and an unknown one", async () => {
    const scene = new Scene(pieces(1, 1), 1);
    scene.request = { html: "x", unknown: 1 };
    expect((await refusalOf(scene.run())).code).to.equal("invalid_request");
    scene.objects.get = async () => undefined;
    expect((await refusalOf(scene.run())).code).to.equal("not_found");
  });

  it("run() takes a request that an older version stored as it came", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    scene.isSealed = false;
    const { send } = await scene.run();
    expect(send[0]?.input).to.have.nested.property("result.bytes", 10);
  });

  it("run() opens no page if the key opens nothing, and tries again if nobody can open it now", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    const nobody = new Error("nobody");
    scene.openKey = () => {
      throw nobody;
    };
    expect(await scene.run({ attempt: TASK_TRIES_MAX }).catch((error) => error)).to.equal(nobody);
    const noKey = new NoRequestKey("no key");
    scene.openKey = () => {
      throw noKey;
    };
    const runs = (attempt: number) => scene.run({ attempt }).catch((error) => error);
    scene.keyPauses.length = 0;
    expect(await runs(TASK_TRIES_MAX - 1)).to.equal(noKey);
    expect(scene.keyPauses.length).to.be.within(1, KEY_MISSING_WAIT_MS / KEY_PAUSE_MS + 1);
    const last = await runs(TASK_TRIES_MAX);
    expect([last.code, last.message]).to.deep.equal(["internal_error", "no key"]);
    scene.openKey = newRequestKey;
    expect(await scene.run().catch((error) => error.name)).to.equal("OperationError");
    expect(scene.signal).to.equal(undefined);
  });

  it("run() waits while no host of actors opens the key, and for a minute at most", async () => {
    const scene = new Scene(pieces(1, 10), 10);
    let missing = 3;
    scene.openKey = () => {
      if (missing-- > 0) throw new RequestKeyNotOpened("no actors answer");
      return KEY;
    };
    expect((await scene.run()).send).to.have.length(1);
    expect(scene.keyPauses).to.deep.equal([KEY_PAUSE_MS, KEY_PAUSE_MS, KEY_PAUSE_MS]);
    missing = Number.POSITIVE_INFINITY;
    const failed = await scene.run().catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(RequestKeyNotOpened);
    expect(scene.keyPauses.length - 3).to.be.within(1, KEY_WAIT_MS / KEY_PAUSE_MS + 1);
  });
});

async function* pieces(count: number, bytes: number) {
  for (let index = 0; index < count; index++) yield new Uint8Array(bytes);
}

async function* broken(error: Error) {
  yield new Uint8Array(1);
  throw error;
}

async function* untilAborted(signalOf: () => AbortSignal | undefined) {
  yield new Uint8Array(1);
  const signal = signalOf();
  if (signal && !signal.aborted) await once(signal, "abort");
  throw signal?.reason;
}
