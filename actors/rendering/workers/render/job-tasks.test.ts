import { once } from "node:events";
import { expect } from "chai";
import { ActorError } from "../../../../schemas/errors.ts";
import { RENDER_JOB_RESERVED_BYTES } from "../../../../schemas/rendering/limits.ts";
import {
  type JobResult,
  renderJobs,
  requestObjectOf,
} from "../../../../schemas/rendering/render-jobs.ts";
import { MemoryObjects } from "../../../../scripts/testing/memory-objects.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { JobTasks } from "./job-tasks.ts";

const ACCOUNT = "a".repeat(32);
const ID = "1".repeat(32);
const MIB = 1024 * 1024;

/** A job whose PDF consists of these pieces, and the calls of its worker to the account's jobs. */
class Scene {
  readonly objects = new MemoryObjects();
  readonly asked: { message: string; bytes?: number }[] = [];
  isWanted = true;
  refusal: ActorError | undefined;
  /** The signal that the handler of the call received. */
  signal: AbortSignal | undefined;
  request: object = { html: "x" };
  readonly #pieces: AsyncIterable<Uint8Array>;
  readonly #bytes: number | null;

  constructor(pieces: AsyncIterable<Uint8Array>, bytes: number | null) {
    this.#pieces = pieces;
    this.#bytes = bytes;
  }

  async run(task: Partial<TaskContext> = {}) {
    const request = Buffer.from(JSON.stringify(this.request));
    await this.objects.putBytes(requestObjectOf(ACCOUNT, ID), request);
    const pdf = async (_: never, { signal }: TaskContext) => {
      this.signal = signal;
      return { reply: { browserMs: 7, bytes: this.#bytes }, chunks: this.#pieces };
    };
    const handlers = new Proxy({}, { get: () => pdf }) as never;
    const jobs = new JobTasks({ objects: this.objects, clock: systemClock, handlers });
    const call = (async (_: unknown, key: string, message: string, input: { bytes?: number }) => {
      expect(key).to.equal(ACCOUNT);
      this.asked.push({ message, ...(input.bytes !== undefined && { bytes: input.bytes }) });
      if (message === "begin") return { isWanted: this.isWanted, call: "pdf", cacheTtlS: 0 };
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
    // The message is one that the account's jobs take.
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
});

async function* pieces(count: number, bytes: number) {
  for (let index = 0; index < count; index++) yield new Uint8Array(bytes);
}

async function* untilAborted(signalOf: () => AbortSignal | undefined) {
  yield new Uint8Array(1);
  const signal = signalOf();
  if (signal && !signal.aborted) await once(signal, "abort");
  throw signal?.reason;
}
