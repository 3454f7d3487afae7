import { expect } from "chai";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { startCluster } from "../../../scripts/testing/nats-server.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";
import { Chain, ChainLost, sealChain } from "./chain.ts";

const ROUNDS = 150;
const { stream, journalStream, journal, checkpoint } = stateSubjects(stateBucket(0));

const payload = (number: number) => JSON.stringify({ number, from: 0, entries: [] });
const seal = () => JSON.stringify({ sealedBy: "another" });

const newChain = (bus: Bus, subject: string, isOver = () => false, of = journalStream) =>
  new Chain({ bus, clock: systemClock, stream: of, subject, isOver });

/** Loses the next requests to a subject, or only the answers to them. */
function losing(bus: Bus, subject: string, lost: ("answer" | "request")[]) {
  const request = bus.request.bind(bus);
  bus.request = async (to, ...rest) => {
    const what = to === subject ? lost.shift() : undefined;
    if (what !== "request") {
      const answer = await request(to, ...rest);
      if (what === undefined) return answer;
    }
    throw new Error("lost on its way");
  };
}

for (const servers of [1, 3]) {
  describe(`a chain on ${servers} servers`, function () {
    this.timeout(600_000);
    const ends = new AsyncDisposableStack();
    let world: World;
    before(async () => {
      const cluster = servers === 1 ? undefined : ends.use(await startCluster(servers));
      const url = cluster && { url: cluster.urls.join(",") };
      world = ends.use(await startWorld({ replicas: servers, ...url }));
    });
    after(() => ends.disposeAsync());

    const stored = async (subject: string, from = 0) => {
      const numbers: (number | "seal")[] = [];
      let next = await world.bus.readNextOfLeader(journalStream, subject, from);
      while (next) {
        numbers.push(next.json<{ number?: number }>().number ?? "seal");
        next = await world.bus.readNextOfLeader(journalStream, subject, next.seq + 1);
      }
      return numbers;
    };

    it("append() follows the last message, also with several payloads and with other writes", async () => {
      const subject = journal("plain");
      const chain = newChain(world.bus, subject);
      await chain.append([payload(0)]);
      const first = await chain.append([payload(1), payload(1)]);
      expect(chain.last).to.equal(first + 1);
      await chain.append([payload(2)]);
      expect(await stored(subject)).to.deep.equal([0, 1, 1, 2]);
      const mark = checkpoint("plain");
      const marks = newChain(world.bus, mark, () => false, stream);
      await marks.append([payload(0)]);
      await marks.append([payload(1)], [{ subject: world.subjects.value("a.b"), payload: "1" }]);
      const value = await world.bus.readLast(stream, world.subjects.value("a.b"));
      expect(value?.seq).to.equal(marks.last - 1);
    });

    it("append() stores a message once if answers or tries are lost, and continues", async () => {
      const subject = journal("lossy");
      const bus = await Bus.connect({ url: world.url, name: "lossy" });
      const chain = newChain(bus, subject);
      losing(bus, subject, ["answer", "request", "request", "answer", "answer"]);
      for (let number = 0; number < 3; number++) await chain.append([payload(number)]);
      expect(await stored(subject)).to.deep.equal([0, 1, 2]);
      await bus.close();
    });

    it("a try that arrives after a later message is refused", async () => {
      const subject = journal("late");
      const chain = newChain(world.bus, subject);
      await chain.append([payload(0)]);
      const expected = { sequence: chain.last };
      await chain.append([payload(1)]);
      const late = await writeAtomically(world.bus, [
        { subject, payload: payload(1), expect: expected },
      ]).catch((error: unknown) => error);
      expect(late).to.be.instanceOf(WriteRefused);
      expect(await stored(subject)).to.deep.equal([0, 1]);
    });

    it("append() rejects with ChainLost after a seal, after its removal, and when its host has another name", async () => {
      const subject = journal("sealed");
      const chain = newChain(world.bus, subject);
      await chain.append([payload(0)]);
      await sealChain(world.bus, { stream: journalStream, subject }, seal);
      const lost = () => chain.append([payload(1)]).catch((error: unknown) => error);
      expect(await lost()).to.be.instanceOf(ChainLost);
      await world.bus.jetstream.streams.purge(journalStream, { filter: subject });
      expect(await lost()).to.be.instanceOf(ChainLost);
      expect(await stored(subject)).to.deep.equal([]);
      const bus = await Bus.connect({ url: world.url, name: "over" });
      const over = newChain(bus, journal("over"), () => true);
      losing(bus, journal("over"), ["request"]);
      const error = await over.append([payload(0)]).catch((cause: unknown) => cause);
      expect(error).to.be.instanceOf(ChainLost);
      await bus.close();
    });

    it("sealChain() writes one seal, also if another host seals again", async () => {
      const subject = journal("twice");
      await newChain(world.bus, subject).append([payload(0)]);
      const by = (name: string) => () => JSON.stringify({ sealedBy: name, from: 7 });
      const first = await sealChain(world.bus, { stream: journalStream, subject }, by("a"));
      const second = await sealChain(world.bus, { stream: journalStream, subject }, by("b"));
      expect(second).to.equal(first);
      expect(await stored(subject)).to.deep.equal([0, "seal"]);
    });

    it("no message is stored behind a seal, at whatever moment another connection writes it", async () => {
      const other = await Bus.connect({ url: world.url, name: "sealer" });
      let acknowledged = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const subject = journal(`race-${round}`);
        const chain = newChain(world.bus, subject);
        await chain.append([payload(0)]);
        const committing = async () => {
          for (let number = 1; ; number++) {
            // Some commits are batches.
            const payloads =
              number % 3 === 0 ? [payload(number), payload(number)] : [payload(number)];
            try {
              await chain.append(payloads);
              acknowledged = number;
            } catch (error) {
              expect(error).to.be.instanceOf(ChainLost);
              return;
            }
          }
        };
        const writing = committing();
        // In each round, the seal is written at another point of the commits.
        for (let turns = 0; turns < round % 40; turns++) await other.connection.flush();
        const sequence = await writeAtomically(other, [{ subject, payload: seal() }]);
        await writing;
        const all = await stored(subject);
        expect(all.at(-1)).to.equal("seal");
        expect(all.indexOf("seal")).to.equal(all.length - 1);
        expect(all.at(-2) ?? 0).to.be.at.least(acknowledged);
        expect(chain.last).to.be.below(sequence);
        acknowledged = 0;
      }
      await other.close();
    });
  });
}
