import { setTimeout as pause, setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { NAME_CLAIM_MS, namespaceActor } from "../../actors/repositories/namespace/namespace.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { namespaceKey } from "../../schemas/repositories/git-names.ts";
import { namespace } from "../../schemas/repositories/namespace.ts";
import { type RepoAddress, repo } from "../../schemas/repositories/repo.ts";
import { until } from "../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../testing/artifacts-world.ts";
import { Repositories } from "./repositories.ts";
import { newRepoId } from "./testing/git-world.ts";

const SPACE = "names";
const codeOf = (error: unknown) => (error instanceof ActorError ? error.code : error);
const lost = () => new ActorError("unavailable", "Cannot reach it: no answer in time");

describe("the name of a repository", function () {
  this.timeout(120_000);
  const late = lateNamespaces();
  const signal = new AbortController().signal;
  let world: ArtifactsWorld;
  let names = 0;
  before(async () => {
    world = await ArtifactsWorld.start({ namespaces: late.actor });
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const actors = () => world.world.client;
  const newAddress = (): RepoAddress => {
    names += 1;
    return { accountId: world.accountId, namespace: SPACE, name: `r${names}` };
  };
  const post = ({ name }: RepoAddress) => world.post(`/${SPACE}/repos`, { name });
  const remove = ({ name }: RepoAddress) =>
    world.ask(`/${SPACE}/repos/${name}`, { method: "DELETE" });
  const findId = async ({ accountId, name }: RepoAddress) => {
    const key = namespaceKey(accountId, SPACE);
    return (await actors().call(namespace, key, "find", { name }, { signal })).id;
  };
  const createLate = (id: string, address: RepoAddress) =>
    actors()
      .call(repo, id, "create", { ...address, ...SETTINGS })
      .then(() => "created", codeOf);
  const claim = async (address: RepoAddress) => {
    const { accountId, name } = address;
    const id = newRepoId();
    const times = { createdAt: 1, updatedAt: 1, lastPushAt: null };
    const listing = { ...SETTINGS, ...times, id, name };
    const input = { accountId, name: SPACE, listing };
    await actors().call(namespace, namespaceKey(accountId, SPACE), "claim", input);
    return id;
  };
  const mailIsHandled = () =>
    until("the mail is handled", async () => (await world.world.mailWaiting()) === 0);

  /** Pushes a commit, and returns a check that the repository still holds it and accepts another one. */
  async function push(created: { remote: string; token: string }) {
    const work = await world.checkout();
    const remote = world.remote(created);
    let commits = 1;
    let last = await work.commit("1");
    await work.git("push", "-q", remote, "main");
    return async () => {
      await mailIsHandled();
      expect(await work.git("ls-remote", remote, "main")).to.contain(last);
      commits += 1;
      last = await work.commit(`${commits}`);
      await work.git("push", "-q", remote, "main");
    };
  }

  it("stays with the repository that got it, when an earlier creation fails later", async () => {
    const address = newAddress();
    const { parts } = world.opened.repositories;
    const gate = Promise.withResolvers<void>();
    const held = heldClient(parts.actors, "create", () => gate.promise);
    const first = new Repositories({ ...parts, actors: held.client }).create(address).catch(codeOf);
    await until("its name is claimed", () => held.ids.length > 0);
    expect((await remove(address)).status).to.equal(202);
    const { status, result } = await post(address);
    expect(status).to.equal(201);
    const isUnharmed = await push(result);
    gate.reject(lost());
    expect(await first).to.equal("unavailable");
    await held.settled();
    expect(await findId(address)).to.equal(result.id);
    await isUnharmed();
    const [id = ""] = held.ids;
    expect(await createLate(id, address), "the creation has its effect too late").to.equal(
      "conflict",
    );
    await isUnharmed();
  });

  it("stays with the repository that got it, when the content of an earlier fork is not found", async () => {
    const address = newAddress();
    const { parts } = world.opened.repositories;
    const held = heldClient(parts.actors, "none");
    const gate = Promise.withResolvers<never>();
    const first = new Repositories({ ...parts, actors: held.client })
      .make(address, {}, { source: "x", status: "ready", content: () => gate.promise })
      .catch(codeOf);
    await until("its name is claimed", () => findId(address).catch(() => false as const));
    expect((await remove(address)).status).to.equal(202);
    const { result } = await post(address);
    const isUnharmed = await push(result);
    gate.reject(lost());
    expect(await first).to.equal("unavailable");
    await held.settled();
    expect(await findId(address)).to.equal(result.id);
    await isUnharmed();
  });

  it("stays with a created repository whose report is late, however late it is", async () => {
    const address = newAddress();
    late.holdsReports = true;
    const { result } = await post(address);
    const isUnharmed = await push(result);
    late.skippedMs += NAME_CLAIM_MS;
    const again = await post(address);
    expect([again.status, again.errors[0]?.code]).to.deep.equal([409, 10201]);
    expect(await findId(address)).to.equal(result.id);
    await isUnharmed();
    late.holdsReports = false;
    await isUnharmed();
  });

  it("is free when its claim has expired and its repository was never created, for one of two", async () => {
    const address = newAddress();
    const former = await claim(address);
    expect((await post(address)).status, "the claim has not expired").to.equal(409);
    late.skippedMs += NAME_CLAIM_MS;
    const both = await Promise.all([post(address), post(address)]);
    expect(both.map(({ status }) => status).sort()).to.deep.equal([201, 409]);
    const { result } = both.find(({ status }) => status === 201) ?? {};
    const isUnharmed = await push(result);
    expect(await createLate(former, address)).to.equal("conflict");
    await isUnharmed();
    expect(await findId(address)).to.equal(result.id);
  });

  it("belongs to exactly one repository, when one is created late and another at the same time", async () => {
    for (let round = 0; round < 24; round++) {
      const address = newAddress();
      const former = await claim(address);
      late.skippedMs += NAME_CLAIM_MS;
      const later = post(address);
      await pause(round % 8);
      const [created, { status, result }] = await Promise.all([createLate(former, address), later]);
      expect(`${created} ${status}`).to.be.oneOf(["created 409", "conflict 201"]);
      await mailIsHandled();
      const id = status === 201 ? result.id : former;
      expect(await findId(address)).to.equal(id);
      expect(await actors().call(repo, id, "get", address)).to.include({ id });
    }
  });

  it("is not free until its repository is removed", async () => {
    const address = newAddress();
    const { parts } = world.opened.repositories;
    const { result } = await post(address);
    const failing = heldClient(parts.actors, "remove", () => Promise.reject(lost()));
    const deletion = new Repositories({ ...parts, actors: failing.client }).delete(address);
    expect(await deletion.catch(codeOf)).to.equal("unavailable");
    expect((await post(address)).status).to.equal(409);
    expect((await remove(address)).result).to.deep.equal({ id: result.id });
    expect((await post(address)).status).to.equal(201);
  });

  it("stays with a repository that another client uses, although its creation was reported as failed", async () => {
    const address = newAddress();
    const { parts } = world.opened.repositories;
    const gate = Promise.withResolvers<void>();
    const held = heldClient(parts.actors, "create", undefined, () => gate.promise);
    const made = new Repositories({ ...parts, actors: held.client }).create(address).catch(codeOf);
    const { plaintext: token } = await until("it exists", () =>
      world.opened.repositories.tokens.mint(address, {}, signal).catch(() => false as const),
    );
    const isUnharmed = await push({ remote: world.opened.repositories.remote(address), token });
    gate.reject(lost());
    expect(await made).to.equal("unavailable");
    await held.settled();
    expect(await findId(address)).to.equal(held.ids[0]);
    await isUnharmed();
  });

  it("is free again if the creation was reported as failed and nobody has used the repository", async () => {
    const address = newAddress();
    const { parts } = world.opened.repositories;
    const held = heldClient(parts.actors, "create", undefined, () => Promise.reject(lost()));
    const made = new Repositories({ ...parts, actors: held.client }).create(address);
    expect(await made.catch(codeOf)).to.equal("unavailable");
    await until("its name is free", async () => (await post(address)).status === 201);
  });
});

const SETTINGS = {
  description: null,
  defaultBranch: "main",
  readOnly: false,
  protectedRefs: [],
  source: null,
  status: "ready" as const,
};

/**
 * A client whose calls of one message wait: before they are sent, or after they were answered. `ids` are the keys of
 * these calls.
 */
function heldClient(
  actors: ActorClient,
  held: string,
  before = async () => {},
  after = async () => {},
) {
  const ids: string[] = [];
  const sent: Promise<unknown>[] = [];
  const client: ActorClient = {
    run: actors.run.bind(actors),
    send: (...parameters) => {
      const sending = actors.send(...parameters);
      sent.push(sending.catch(() => {}));
      return sending;
    },
    call: (contract, key, message, ...rest) => {
      const calling = async () => {
        if (message !== held) return await actors.call(contract, key, message, ...rest);
        ids.push(key);
        await before();
        const reply = await actors.call(contract, key, message, ...rest);
        await after();
        return reply;
      };
      const called = calling();
      sent.push(called.catch(() => {}));
      return called;
    },
  };
  /** Resolves when all messages are durable, also those that nobody waits for. */
  const settled = async () => {
    await setImmediate();
    for (const one of sent) await one;
  };
  return { client, ids, settled };
}

/** The actor of namespaces with a clock that the test moves, and which may not receive the reports of repositories. */
function lateNamespaces() {
  const { handlers } = namespaceActor;
  const late = { skippedMs: 0, holdsReports: false };
  const actor: typeof namespaceActor = {
    ...namespaceActor,
    handlers: {
      ...handlers,
      claim: (state, input, context) =>
        handlers.claim(state, input, { ...context, now: context.now + late.skippedMs }),
      find: (state, input, context) =>
        handlers.find(state, input, { ...context, now: context.now + late.skippedMs }),
      repoChanged: (state, input, context) =>
        late.holdsReports ? { state } : handlers.repoChanged(state, input, context),
    },
  };
  return Object.assign(late, { actor });
}
