import { setTimeout as pause, setImmediate } from "node:timers/promises";
import { expect } from "chai";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { namespaceKey } from "../../schemas/repositories/git-names.ts";
import { namespace } from "../../schemas/repositories/namespace.ts";
import type { RepoAddress } from "../../schemas/repositories/repo.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../testing/artifacts-world.ts";
import { Repositories } from "./repositories.ts";

const ROUNDS = 5;
const NAMES = 12;
const CREATE_MS_MAX = 150;

describe("names of repositories while creations fail and shards move", function () {
  this.timeout(600_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  it("no repository with an acknowledged commit is removed, whatever happens to other creations of its name", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());
    console.log(`      TRUNKLINE_TEST_SEED=${seed}`);
    const random = new SeededRandom(seed);
    for (let round = 0; round < ROUNDS; round++) {
      const host = await world.world.host({ name: `host-${round}` });
      const about = `seed ${seed}, round ${round}`;
      const addresses = Array.from({ length: NAMES }, (_, number) => addressOf(round, number));
      const lives = addresses.map((address) => live(address, random.fork()));
      await pause(random.integer(0, 300));
      await host.stop();
      const commits = await Promise.all(lives);
      await until("the mail is handled", async () => (await world.world.mailWaiting()) === 0);
      for (const [number, address] of addresses.entries()) {
        const { id, hash } = commits[number] ?? {};
        expect(await findId(address), `${about}, ${address.name}`).to.equal(id);
        const log = await world.ask(`/names/repos/${address.name}/log`);
        expect(log.result?.[0]?.hash, `${about}, ${address.name}`).to.equal(hash);
      }
    }
  });

  const addressOf = (round: number, number: number): RepoAddress => {
    return { accountId: world.accountId, namespace: "names", name: `r${round}-${number}` };
  };
  const findId = async ({ accountId, name }: RepoAddress) => {
    const key = namespaceKey(accountId, "names");
    return (await world.world.client.call(namespace, key, "find", { name })).id;
  };

  /**
   * Begins a creation that may fail, deletes its name, creates the name again and commits. Returns the commit when the
   * first creation has ended too.
   */
  async function live(address: RepoAddress, random: SeededRandom) {
    const { parts } = world.opened.repositories;
    const { client, settled } = impatientClient(parts.actors, random);
    const first = new Repositories({ ...parts, actors: client }).create(address).catch(() => {});
    await pause(random.integer(0, CREATE_MS_MAX / 2));
    const create = async () => {
      await world.ask(`/names/repos/${address.name}`, { method: "DELETE" });
      const { status, result } = await world.post("/names/repos", { name: address.name });
      return status === 201 && (result.id as string);
    };
    const id = await until("it is created again", create, 120_000);
    const commit = async () => {
      const changes = [{ path: "a", content: `${random.next()}` }];
      const input = { message: "m", changes };
      const { status, result } = await world.post(`/names/repos/${address.name}/commits`, input);
      return status === 201 && (result.hash as string);
    };
    const hash = await until("it has a commit", commit, 120_000);
    await first;
    await settled();
    return { id, hash };
  }
});

/** A client that soon stops waiting for the creation of a repository, which may then happen later. */
function impatientClient(actors: ActorClient, random: SeededRandom) {
  const sent: Promise<unknown>[] = [];
  const client: ActorClient = {
    run: actors.run.bind(actors),
    send: (...parameters) => {
      const sending = actors.send(...parameters);
      sent.push(sending);
      return sending;
    },
    call: (contract, key, message, input, options) => {
      const deadlineMs = random.integer(1, CREATE_MS_MAX);
      const limited = message === "create" ? { ...options, deadlineMs } : options;
      const called = actors.call(contract, key, message, input, limited);
      sent.push(called);
      return called;
    },
  };
  /** Resolves when all messages have ended, also those that nobody waits for. */
  const settled = async () => {
    await setImmediate();
    await Promise.allSettled(sent);
  };
  return { client, settled };
}
