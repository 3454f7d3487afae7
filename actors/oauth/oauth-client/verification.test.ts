import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Input } from "../../../schemas/contract.ts";
import { dnsCheck } from "../../../schemas/oauth/dns-check.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { DnsServer } from "../../../scripts/testing/dns-server.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { oauthClientListActor } from "../oauth-client-list/oauth-client-list.ts";
import { dnsCheckWorker } from "../workers/dns-check/dns-check.ts";
import { oauthClientActor } from "./oauth-client.ts";
import { ACCOUNT, by, complete, secret } from "./testing/driven-client.ts";

const HOST = "bot.example.com";
const accountId = ACCOUNT;

describe("verification over the bus and DNS", function () {
  this.timeout(60_000);
  let world: World;
  let server: DnsServer;
  beforeEach(async () => {
    server = await DnsServer.start();
    const definitions = [oauthClientActor, oauthClientListActor];
    world = await startWorld({ definitions, tasks: [dnsCheck] });
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  const startWorker = () =>
    world.worker([
      dnsCheckWorker({ servers: [server.address], timing: { tryMs: 5_000, tries: 1 } }),
    ]);
  const pace = { pollMs: 20, windowMs: 60_000 };

  async function create(windowMs = pace.windowMs): Promise<string> {
    const id = randomBytes(16).toString("hex");
    await world.client.call(oauthClientList, accountId, "reserve", { clientId: id });
    const made = { accountId, by, settings: complete, secret: secret(1) };
    await world.client.call(oauthClient, id, "create", { ...made, pace: { ...pace, windowMs } });
    return id;
  }

  const get = (id: string) => world.client.call(oauthClient, id, "get", { accountId });
  const textOf = async (id: string) => (await get(id)).verification?.text ?? "";

  type Update = Input<(typeof oauthClient)["messages"]["update"]>;
  const update = (id: string, asked: Partial<Update>) =>
    world.client.call(oauthClient, id, "update", { accountId, by, patch: {}, pace, ...asked });

  const untilVerification = (id: string, what: string, is: (found: Verified) => boolean) =>
    until(what, async () => {
      const { verification } = await get(id);
      return verification !== undefined && is(verification) && verification;
    });
  type Verified = NonNullable<Awaited<ReturnType<typeof get>>["verification"]>;

  it("looks up the record until it exists, and shows the results meanwhile", async () => {
    await world.host();
    await startWorker();
    const id = await create();
    const waiting = await untilVerification(
      id,
      "an answer",
      (found) => found.lastAnswer !== undefined,
    );
    expect(waiting).to.include({ status: "in_progress", lastAnswer: "The domain does not exist" });
    server.records.set(HOST, [["something else"]]);
    await untilVerification(
      id,
      "another answer",
      (found) => found.lastAnswer === 'TXT "something else"',
    );
    server.records.set(HOST, [["something else"], [await textOf(id)]]);
    await untilVerification(id, "verified", ({ status }) => status === "verified");
    expect(server.asked.length).to.be.at.least(3);
  });

  it("continues after its hosts and workers are replaced", async () => {
    const first = await world.host({ name: "first" });
    const worker = await startWorker();
    const id = await create();
    await until("a few lookups", () => server.asked.length >= 3);
    await worker.stop(1_000);
    await first.stop();
    const asked = server.asked.length;
    await world.host({ name: "second" });
    expect((await get(id)).verification).to.include({ status: "in_progress" });
    server.records.set(HOST, [[await textOf(id)]]);
    await startWorker();
    await untilVerification(id, "verified", ({ status }) => status === "verified");
    expect(server.asked.length).to.be.greaterThan(asked);
  });

  it("fails after its time window, and starts again when the client URL is sent again", async () => {
    await world.host();
    await startWorker();
    server.records.set(HOST, "SERVFAIL");
    // The verification time is long enough for a lookup on a busy machine.
    const id = await create(5_000);
    const failed = await untilVerification(id, "failed", ({ status }) => status === "failed");
    expect(failed.lastAnswer).to.contain("SERVFAIL");
    await until("no lookup is under way", async () => (await world.count(STREAMS.tasks)) === 0);
    const { length } = server.asked;
    server.records.set(HOST, [[await textOf(id)]]);
    await update(id, { patch: { clientUri: complete.clientUri } });
    await untilVerification(id, "verified", ({ status }) => status === "verified");
    expect(server.asked.length).to.equal(length + 1);
  });

  it("flags a public client whose record is gone, and removes the flag when the record returns", async () => {
    await world.host();
    await startWorker();
    const id = await create();
    server.records.set(HOST, [[await textOf(id)]]);
    await untilVerification(id, "verified", ({ status }) => status === "verified");
    await update(id, { visibility: "public" });
    const { text } = (await get(id)).verification ?? {};
    server.records.delete(HOST);
    const look = () => update(id, { patch: { clientUri: complete.clientUri } });
    await look();
    await untilVerification(id, "flagged", ({ missingSince }) => missingSince !== undefined);
    expect((await get(id)).visibility).to.equal("public");
    server.records.set(HOST, [[text ?? ""]]);
    await look();
    await untilVerification(id, "not flagged", ({ missingSince }) => missingSince === undefined);
  });

  it("stops once the client is deleted, which the list then omits", async () => {
    await world.host();
    await startWorker();
    const id = await create();
    await until("a few lookups", () => server.asked.length >= 2);
    await world.client.call(oauthClient, id, "remove", { accountId, by });
    await until("an empty list", async () => {
      const page = { count: 10 };
      const { clientIds } = await world.client.call(oauthClientList, accountId, "list", page);
      return clientIds.length === 0;
    });
    expect((await refusalOf(get(id))).code).to.equal("not_found");
    const page = { accountId, count: 10 };
    const { entries } = await world.client.call(oauthClient, id, "listChanges", page);
    expect(entries.map(({ action }) => action)).to.deep.equal(["deleted", "created"]);
  });
});
