import { expect } from "chai";
import pino from "pino";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { StateStore } from "../state/state-store.ts";
import { NOBODY } from "./epoch.ts";
import { KnownEpochs } from "./known-epochs.ts";

describe("KnownEpochs", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  function open() {
    const learned: number[] = [];
    const store = new StateStore(world.bus, world.subjects);
    const epochs = new KnownEpochs({
      ...{ bus: world.bus, logger: pino({ level: "silent" }), storeOf: () => store },
      learned: (_shard, { sequence }) => void learned.push(sequence),
    });
    return { epochs, learned };
  }

  it("write() does not replace a later epoch whose news came before the answer", async () => {
    const { epochs, learned } = open();
    const { request } = world.bus;
    const later = { ...NOBODY, owner: "another" };
    world.bus.request = async (...asked) => {
      const answer = await request.apply(world.bus, asked);
      epochs.learn(0, { ...later, sequence: answer.json<{ seq: number }>().seq + 1 });
      return answer;
    };
    try {
      const sequence = await epochs.write(0, { ...NOBODY, owner: "own" }, 0);
      expect(epochs.get(0)).to.deep.equal({ ...later, sequence: sequence + 1 });
      expect(learned).to.deep.equal([sequence + 1]);
    } finally {
      world.bus.request = request;
    }
  });

  it("write() is known, and is no news", async () => {
    const { epochs, learned } = open();
    const sequence = await epochs.write(1, { ...NOBODY, owner: "own" }, 0);
    epochs.learn(1, { ...NOBODY, owner: "old", sequence: sequence - 1 });
    expect(epochs.get(1)).to.deep.include({ owner: "own", sequence });
    expect(learned).to.deep.equal([]);
  });
});
