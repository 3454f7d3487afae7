import { expect } from "chai";
import pino from "pino";
import { BUS_REQUEST_MS } from "../../../schemas/limits.ts";
import { laneOf, mailIn, mailTo } from "../../../schemas/split-streams.ts";
import { addressOf, STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { startCluster, type TestNatsCluster } from "../../../scripts/testing/nats-server.ts";
import { stopProcess } from "../../../scripts/testing/process-children.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { NOTHING_SENT, Outbox, unsent } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { mailStreamOf, OutboxRelay } from "./outbox-relay.ts";

/** Streams to which one outbox publishes. The only replica of each is on a server of its own. */
const SPREAD = [mailIn(0).stream, mailIn(1).stream, STREAMS.tasks];
const ROUNDS = 10;
/** Time until a server that stood still has joined the cluster again. */
const RETURN_MS_MAX = 240_000;

describe("OutboxRelay, while the server of one stream does not answer", function () {
  this.timeout(600_000);
  const ends = new AsyncDisposableStack();
  let cluster: TestNatsCluster;
  let world: World;
  before(async () => {
    cluster = ends.use(await startCluster(3, "server_tags: [$TRUNKLINE_NATS_NAME]"));
    const url = cluster.urls.join(",");
    world = ends.use(await startWorld({ url, tasks: [echo], layout: { mailStreams: 2 } }));
    const { streams } = world.bus.jetstream;
    for (const [index, name] of SPREAD.entries()) {
      const { config } = await streams.info(name);
      await streams.delete(name);
      // Direct gets answer also while the servers elect the leader of the cluster.
      const placement = { cluster: "trunkline", tags: [`test-${index}`] };
      await streams.add({ ...config, allow_direct: true, placement });
    }
  });
  after(() => ends.disposeAsync());

  /** Returns a key whose mail is in this stream. */
  function keyIn(stream: number): string {
    for (let number = 0; ; number++) {
      const key = `key-${number}`;
      if (world.bus.shardOf(addressOf("probe", key)) % 2 === stream) return key;
    }
  }
  const subjectOf = (index: number) =>
    SPREAD[index] === STREAMS.tasks
      ? laneOf(world.bus.layout, { kind: "echo", lane: "slow" }).subject
      : mailTo(world.bus.layout, addressOf("probe", keyIn(index)));

  /** Returns an unsent message to the stream. */
  function messageTo(index: number, from: string, text: string) {
    if (SPREAD[index] !== STREAMS.tasks) {
      const mail = { to: "actor", kind: "probe", message: "note" } as const;
      return unsent({ from, ...mail, key: keyIn(index), input: { text } });
    }
    const task = { from, to: "worker", kind: "echo", key: "k", message: "tell" } as const;
    return unsent({ ...task, lane: "slow", input: { text, failing: 0 } });
  }

  async function textsOf(index: number, from: string): Promise<string[]> {
    const texts: string[] = [];
    for (let next = 1; ; ) {
      const found = await world.bus.readNextOfLeader(SPREAD[index] ?? "", subjectOf(index), next);
      if (!found) return texts;
      const message = found.json<{ from: string; input: { text: string } }>();
      if (message.from === from) texts.push(message.input.text);
      next = found.seq + 1;
    }
  }

  for (const [away, stream] of SPREAD.entries()) {
    it(`publishes to the other streams as fast as before, and to ${stream} once and in order when it answers again`, async () => {
      const bus = await Bus.connect({ url: cluster.urls[(away + 1) % 3] ?? "", name: "relay" });
      bus.layout = world.bus.layout;
      const failures: string[] = [];
      const logger = pino({}, { write: (line) => void failures.push(line) });
      const ignore = () => {};
      const relay = new OutboxRelay({
        ...{ bus, clock: systemClock, logger, drained: ignore, reloaded: ignore },
        owns: async () => true,
      });
      const { subjects } = world;
      const shard = new Shard({
        ...{ number: away, epoch: 1, host: "test", subjects, sentRevisions: [0, 0] },
        outbox: new Outbox(undefined, [NOTHING_SENT, NOTHING_SENT], mailStreamOf(bus)),
      });
      const from = `probe.sender-${away}`;
      const all = SPREAD.map((_, index) => index);
      const others = all.filter((index) => index !== away);
      const isThere = async (index: number, text: string) => {
        const query = { last_by_subj: subjectOf(index) };
        const last = await bus.jetstream.direct
          .getMessage(SPREAD[index] ?? "", query)
          .catch(() => undefined);
        return last?.json<{ input: { text: string } }>().input.text === text;
      };
      const arrived = (index: number, text: string) =>
        until(`${text} is in ${SPREAD[index]}`, () => isThere(index, text), RETURN_MS_MAX);
      const posted: string[] = [];
      /** Sends a message to each stream, and waits until those to the other streams are stored. */
      const round = async (text: string) => {
        posted.push(text);
        const sends = all.map((index) => messageTo(index, from, text));
        shard.outbox.add(shard.outbox.number(sends));
        relay.add(shard);
        await Promise.all(others.map((index) => arrived(index, text)));
      };
      const rounds = async (name: string) => {
        const startedAt = performance.now();
        for (let number = 0; number < ROUNDS; number++) await round(`${name} ${number}`);
        return performance.now() - startedAt;
      };
      const { pid } = cluster.servers[away] ?? {};
      if (pid === undefined) throw new Error("The server does not run");
      try {
        const referenceMs = await rounds("before");
        const isEmpty = () => shard.outbox.entries.length === 0;
        await until("all of it is marked", isEmpty, RETURN_MS_MAX);
        // The server of the last test may still have been on its way back.
        failures.length = 0;
        await stopProcess(pid);
        await round("first");
        expect(failures, "it waited for no answer of the other server").to.deep.equal([]);
        const awayMs = await rounds("away");
        expect(awayMs).to.be.below(4 * referenceMs + BUS_REQUEST_MS);
        await until("a try failed", () => failures.length > 0);
        process.kill(pid, "SIGCONT");
        await until("all of it is marked", isEmpty, RETURN_MS_MAX);
        for (const index of all) {
          const texts = await textsOf(index, from);
          if (SPREAD[index] === STREAMS.tasks) expect(texts).to.have.members(posted);
          else expect(texts).to.deep.equal(posted);
        }
      } finally {
        process.kill(pid, "SIGCONT");
        shard.status = "gone";
        await bus.close();
      }
    });
  }
});
