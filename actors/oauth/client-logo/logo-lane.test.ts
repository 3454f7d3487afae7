import { expect } from "chai";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { logoFetch } from "../../../schemas/oauth/logo-fetch.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { oauthClientActor } from "../oauth-client/oauth-client.ts";
import { ACCOUNT, by, pace, secret, settings } from "../oauth-client/testing/driven-client.ts";
import { oauthClientListActor } from "../oauth-client-list/oauth-client-list.ts";
import { clientLogoActor } from "./client-logo.ts";

const accountId = ACCOUNT;
const key = "c".repeat(32);
const CHANGES = 20;
const logo = { type: "image/png" as const, hash: "1".repeat(64), base64: "AAAA" };
const first = "https://bot.example.com/first.png";
const second = "https://bot.example.com/second.png";

describe("the lane of logos", function () {
  this.timeout(60_000);
  let world: World;
  beforeEach(async () => {
    const definitions = [oauthClientActor, oauthClientListActor, clientLogoActor];
    world = await startWorld({ definitions, tasks: [logoFetch] });
    await world.host();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  /** Reports the result of a fetch, as a worker does. */
  const report = () =>
    world.client.send(clientLogo, key, "fetched", { uri: first, attempt: 1, logo });
  const hasCopy = async () =>
    (await world.client.call(clientLogo, key, "find", { uri: first })).hash !== undefined;
  const tasks = () => world.count(STREAMS.tasks);

  it("holds one task of a client, however often the client sets its logo", async () => {
    const made = { ...settings, logoUri: first };
    const create = { accountId, by, settings: made, secret: secret(1), pace };
    const set = (logoUri: string) =>
      world.client.call(oauthClient, key, "update", { accountId, by, patch: { logoUri }, pace });
    await world.client.call(oauthClient, key, "create", create);
    await until("the first task is queued", async () => (await tasks()) === 1);
    await report();
    await until("the copy exists", hasCopy);
    for (let number = 0; number < CHANGES; number++) await set(first);
    await set(second);
    // Mail from one actor arrives in order, so all requests have arrived when the copy of the first address is gone.
    await until("all requests have arrived", async () => !(await hasCopy()));
    await report();
    await until("the result starts another fetch", async () => (await tasks()) >= 3);
    // No worker runs, so the tasks of both results are still in the stream.
    expect(await tasks()).to.equal(3);
  });
});
