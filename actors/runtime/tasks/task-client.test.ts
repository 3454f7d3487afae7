import { expect } from "chai";
import { CHUNK_BYTES } from "../../../schemas/limits.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { answerWrites, ID_IN_PROCESS } from "../../../scripts/testing/answer-writes.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Task } from "./task.ts";

/** Sends messages to the caller of a task as workers do, in any order that a test needs. */
interface Speaker {
  say(step: string, payload?: string, timeoutMs?: number): Promise<Uint8Array>;
}

/** How long a test waits before it concludes that no answer comes. */
const SILENCE_MS = 500;

describe("BusActorClient.run()", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld({ tasks: [echo] });
  });
  after(() => world[Symbol.asyncDispose]());

  const run = (deadlineMs = 50_000, text = "a") =>
    world.client.run(
      echo,
      "key",
      "say",
      { text },
      { deadlineMs, signal: new AbortController().signal },
    );
  async function pull(): Promise<(attempt: string) => Speaker> {
    const consumer = await world.bus.jetstream
      .jetstream()
      .consumers.get(STREAMS.tasks, "echo-fast");
    const message = await consumer.next({ expires: 20_000, bind: true });
    if (!message) throw new Error("no task came");
    message.ack();
    const { caller } = Task.parse(message.json());
    return (attempt) => ({
      say: async (step, payload = "", timeoutMs = 20_000) =>
        (await world.bus.request(`${caller?.inbox}.${attempt}.${step}`, payload, { timeoutMs }))
          .data,
    });
  }
  const reply = JSON.stringify({ text: "a", attempt: 1 });
  async function read(chunks: AsyncIterable<Uint8Array>): Promise<string> {
    let text = "";
    for await (const chunk of chunks) text += Buffer.from(chunk).toString();
    return text;
  }

  it("stores no input of a waiting caller in a stream, whatever its size", async () => {
    for (const text of ["planted", "planted".repeat(50_000)]) {
      const running = run(50_000, text);
      const lane = "task.echo.fast";
      const stored = await until("it is queued", () => world.bus.readLast(STREAMS.tasks, lane));
      expect(stored.string()).to.include('"say"').and.not.include("planted");
      const { say } = (await pull())("one");
      await say("started");
      const first = Buffer.from(await say("input.0")).toString();
      expect(first).to.equal(JSON.stringify({ text }).slice(0, CHUNK_BYTES));
      await say("reply", reply);
      await say("end");
      await read((await running).chunks);
    }
  });

  it("queues the task again while the stream has an earlier copy of it in process", async () => {
    const isTask = (subject: string) => subject.startsWith("task.");
    const end = answerWrites(world.bus, isTask, ["none", ID_IN_PROCESS, ID_IN_PROCESS]);
    const running = run();
    const { say } = (await pull())("one");
    end();
    await say("started");
    await say("reply", reply);
    await say("end");
    expect((await running).reply.text).to.equal("a");
  });

  it("puts bytes that arrive out of order into order, and takes each once", async () => {
    const running = run();
    const { say } = (await pull())("one");
    await say("started");
    await say("reply", reply);
    const { chunks } = await running;
    const text = read(chunks);
    const sent = [say("chunk.2", "c"), say("chunk.1", "b"), say("chunk.0", "a")];
    await Promise.all(sent);
    await say("chunk.1", "b");
    await say("chunk.3", "d");
    await say("end");
    await say("end", "", SILENCE_MS).catch(() => {}); // The caller may have left by now.
    expect(await text).to.equal("abcd");
  });

  it("ignores a worker that counts as dead", async () => {
    const running = run();
    const speaker = await pull();
    const [dead, living] = [speaker("dead"), speaker("living")];
    await dead.say("started");
    await living.say("started");
    const late = dead.say("reply", JSON.stringify({ text: "late", attempt: 1 }), SILENCE_MS);
    expect(await late.catch((error: Error) => error.name)).to.equal("TimeoutError");
    await living.say("reply", reply);
    const done = await running;
    expect(done.reply.text).to.equal("a");
    await living.say("end");
    expect(await read(done.chunks)).to.equal("");
  });

  it("refuses when its worker dies during the answer, so that two answers never mix", async () => {
    const running = run();
    const speaker = await pull();
    await speaker("first").say("started");
    await speaker("first").say("reply", reply);
    const { chunks } = await running;
    const text = refusalOf(read(chunks));
    await speaker("first").say("chunk.0", "a");
    await speaker("second").say("started");
    expect(await text).to.include({ code: "unavailable" });
  });

  it("passes on the refusal of a worker that did not even start", async () => {
    const running = refusalOf(run());
    const { say } = (await pull())("one");
    await say(
      "refused",
      JSON.stringify({ code: "busy", message: "m", details: { retryAfterS: 3 } }),
    );
    const error = await running;
    expect(error).to.include({ code: "busy", message: "m" });
    expect(error.details).to.deep.equal({ retryAfterS: 3 });
  });

  it("does not tell a waiting caller that it has left, when a worker could not reach it", async () => {
    const running = refusalOf(run());
    const { say } = (await pull())("one");
    await say("started");
    await say("refused", JSON.stringify({ code: "cancelled", message: "its asker has left" }));
    const error = await running;
    expect(error.code).to.equal("unavailable");
    expect(error.details).to.deep.equal({ retryAfterS: 1 });
  });
});
