import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { CALL_BATCH_MAX } from "../../../schemas/limits.ts";
import { addressOf, callSubject, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { encodeRefusal } from "../bus/refusal.ts";
import { systemClock } from "../lib/clock.ts";
import { inRequest, recordSteps } from "../lib/trace.ts";
import { BusActorClient } from "./actor-client.ts";
import { CALL_BATCH_BYTES_MAX } from "./call-batches.ts";

describe("calls of one turn", function () {
  this.timeout(60_000);
  let world: World;
  let client: BusActorClient;
  before(async () => {
    world = await startWorld({ definitions: [counterActor, probeActor] });
    // With this clock no try times out, so no call is sent again because its answer is late.
    client = new BusActorClient(world.bus, { ...systemClock, monotonic: () => 0 });
  });
  after(() => world[Symbol.asyncDispose]());

  const increment = (key: string) => client.call(counter, key, "increment", { by: 1 });
  const several = (count: number, key: string) =>
    Promise.all(Array.from({ length: count }, () => increment(key)));
  /** Records how many calls each message to the actor holds. */
  async function watch(kind: string, key: string) {
    const address = addressOf(kind, key);
    const sizes: number[] = [];
    const subscription = world.bus.connection.subscribe(callSubject(shardOf(address), address), {
      callback: (_, message) => {
        const sent = message.json<unknown[] | object>();
        sizes.push(Array.isArray(sent) ? sent.length : 1);
      },
    });
    await world.bus.connection.flush();
    return { sizes, [Symbol.dispose]: () => subscription.unsubscribe() };
  }

  it("are all refused if their message is refused", async () => {
    const address = addressOf("counter", "unread");
    const { headers, payload } = encodeRefusal(new ActorError("invalid_request", "Cannot read"));
    const { connection } = world.bus;
    const subscription = connection.subscribe(callSubject(shardOf(address), address), {
      callback: (_, message) => void message.respond(payload, { headers }),
    });
    const refusals = await Promise.all([1, 2, 3].map(() => refusalOf(increment("unread"))));
    for (const { code } of refusals) expect(code).to.equal("invalid_request");
    subscription.unsubscribe();
  });

  it("all reach an actor without an owner, once it has one", async () => {
    const early = several(3, "early");
    const other = increment("other");
    const caller = new AbortController();
    const { signal } = caller;
    const first = refusalOf(client.call(counter, "left", "get", {}, { signal }));
    const left = several(2, "left");
    caller.abort();
    await first;
    await until("they are sent again", () => world.bus.connection.stats().outMsgs > 20);
    // A host that loses its lease would leave calls unanswered, which are then sent again.
    await world.host({ longLease: true });
    expect((await early).map(({ count }) => count)).to.have.members([1, 2, 3]);
    expect(await other).to.deep.equal({ count: 1 });
    expect((await left).map(({ count }) => count)).to.have.members([1, 2]);
  });

  it("share a message also when they belong to requests, and each call keeps its own request", async () => {
    await increment("asked");
    const steps: string[] = [];
    const stop = recordSteps(({ request, name }) => steps.push(`${request} ${name}`));
    using watched = await watch("counter", "asked");
    await Promise.all(["r1", "r2"].map((id) => inRequest("0", id, () => several(2, "asked"))));
    stop();
    expect(watched.sizes).to.deep.equal([4]);
    const all = ["r1", "r1", "r2", "r2"].map((id) => `${id} counter increment`);
    expect(steps.toSorted()).to.deep.equal(all);
  });

  it("go to one actor in one message, and each gets its own answer", async () => {
    using watched = await watch("counter", "mixed");
    const refused = refusalOf(client.call(counter, "mixed", "refuse", {}));
    const counts = several(3, "mixed");
    await increment("elsewhere");
    expect((await counts).map(({ count }) => count)).to.deep.equal([1, 2, 3]);
    expect(await refused)
      .to.be.instanceOf(ActorError)
      .and.include({ code: "conflict" });
    await until("the message is seen", () => watched.sizes.length > 0);
    expect(watched.sizes).to.deep.equal([4]);
  });

  it("are CALL_BATCH_MAX in a message, and one more goes into the next", async () => {
    using watched = await watch("counter", "many");
    await several(CALL_BATCH_MAX, "many");
    await several(CALL_BATCH_MAX + 1, "many");
    await until("the last is seen", () => watched.sizes.length === 3);
    expect(watched.sizes).to.deep.equal([CALL_BATCH_MAX, CALL_BATCH_MAX, 1]);
  });

  it("are not joined past CALL_BATCH_BYTES_MAX", async () => {
    using watched = await watch("probe", "large");
    const value = "x".repeat(CALL_BATCH_BYTES_MAX / 6);
    const put = (row: string) => client.call(probe, "large", "setRow", { row, value });
    await Promise.all([put("a"), put("b"), put("c")]);
    await until("the last is seen", () => watched.sizes.length === 3);
    await Promise.all([put("a"), client.call(probe, "large", "get", {}), put("b")]);
    await until("the last is seen", () => watched.sizes.length === 5);
    expect(watched.sizes).to.deep.equal([1, 1, 1, 2, 1]);
  });

  it("get large answers in separate messages", async () => {
    const characters = 600_000;
    const answer = () => client.call(probe, "large", "answer", { characters });
    const answers = await Promise.all([answer(), answer(), answer()]);
    for (const { text } of answers) expect(text).to.have.length(characters);
  });
});
