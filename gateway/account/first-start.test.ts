import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { accountActor } from "../../actors/account/account/account.ts";
import { apiTokenActor } from "../../actors/account/api-token/api-token.ts";
import { installationActor } from "../../actors/account/installation/installation.ts";
import { userActor } from "../../actors/account/user/user.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { account } from "../../schemas/account/account.ts";
import { apiToken } from "../../schemas/account/api-token.ts";
import { ALL_PERMISSIONS } from "../../schemas/account/permissions.ts";
import { user } from "../../schemas/account/user.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { readToken } from "./api-token-text.ts";
import { firstStart } from "./first-start.ts";

const logger = pino({ level: "silent" });
const publicUrl = "http://127.0.0.1:8787";

describe("first start", () => {
  const folders: string[] = [];
  const newFolder = async () => {
    const folder = await mkdtemp(join(tmpdir(), "first-start-"));
    folders.push(folder);
    return folder;
  };
  const newActors = () =>
    memoryActors({ actors: [accountActor, apiTokenActor, installationActor, userActor] });
  after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  it("firstStart() makes account, user and token, and writes how to use them", async () => {
    const actors = newActors();
    // A folder that is not there yet.
    const dataDir = join(await newFolder(), "data");
    expect(await firstStart({ actors, dataDir, publicUrl, logger })).to.equal("made");
    expect(await readdir(dataDir)).to.deep.equal(["credentials.json"]);
    expect((await stat(join(dataDir, "credentials.json"))).mode & 0o777).to.equal(0o600);
    const credentials = await read(dataDir);
    expect(Object.keys(credentials)).to.deep.equal([
      ...["base_url", "account_id", "api_token", "metrics_token", "user"],
    ]);
    expect(Object.keys(credentials.user)).to.deep.equal(["email", "password"]);
    expect(credentials.base_url).to.equal("http://127.0.0.1:8787/v4");
    await checkWorks(actors, credentials);
  });

  it("firstStart() adds a metrics token to the file of an earlier release, unless the settings have one", async () => {
    const actors = newActors();
    const dataDir = await newFolder();
    const metricsToken = "a-token-of-the-settings";
    await firstStart({ actors, dataDir, publicUrl, logger, metricsToken });
    const before = await read(dataDir);
    expect(before).to.not.have.property("metrics_token");
    await firstStart({ actors, dataDir, publicUrl, logger });
    const { metrics_token, ...others } = await read(dataDir);
    expect(metrics_token).to.match(/^[\w-]{32}$/);
    expect(others).to.deep.equal(before);
    await firstStart({ actors, dataDir, publicUrl, logger });
    expect(await read(dataDir)).to.deep.equal({ ...others, metrics_token });
  });

  it("firstStart() keeps its credentials, and updates a changed public address", async () => {
    const actors = newActors();
    const dataDir = await newFolder();
    await firstStart({ actors, dataDir, publicUrl, logger });
    const before = await read(dataDir);
    expect(await firstStart({ actors, dataDir, publicUrl, logger })).to.equal("kept");
    expect(await read(dataDir)).to.deep.equal(before);
    const moved = "https://example.com";
    expect(await firstStart({ actors, dataDir, publicUrl: moved, logger })).to.equal("kept");
    expect(await read(dataDir)).to.deep.equal({ ...before, base_url: `${moved}/v4` });
    expect((await stat(join(dataDir, "credentials.json"))).mode & 0o777).to.equal(0o600);
  });

  it("firstStart() does not bring back a token that was revoked since", async () => {
    const actors = newActors();
    const dataDir = await newFolder();
    await firstStart({ actors, dataDir, publicUrl, logger });
    const { id, secretHash } = readToken((await read(dataDir)).api_token) ?? never();
    await actors.call(apiToken, id, "revoke", {});
    expect(await firstStart({ actors, dataDir, publicUrl, logger })).to.equal("kept");
    const refused = await refusalOf(actors.call(apiToken, id, "verify", { secretHash }));
    expect(refused.code).to.equal("unauthenticated");
  });

  it("firstStart() of many processes at once makes one account", async () => {
    const actors = newActors();
    const starting = await Promise.all(Array.from({ length: 8 }, newFolder));
    const outcomes = await Promise.all(
      starting.map((dataDir) => firstStart({ actors, dataDir, publicUrl, logger })),
    );
    expect(outcomes.toSorted()).to.deep.equal([...Array(7).fill("elsewhere"), "made"]);
    const files = await Promise.all(starting.map((folder) => readdir(folder)));
    expect(files.flat()).to.deep.equal(["credentials.json"]);
    await checkWorks(actors, await read(starting[outcomes.indexOf("made")] ?? ""));
  });

  it("firstStart() in a folder of another cluster leaves its credentials alone", async () => {
    const dataDir = await newFolder();
    await firstStart({ actors: newActors(), dataDir, publicUrl, logger });
    const before = await read(dataDir);
    const other = newActors();
    await firstStart({ actors: other, dataDir: await newFolder(), publicUrl, logger });
    expect(await firstStart({ actors: other, dataDir, publicUrl, logger })).to.equal("elsewhere");
    expect(await read(dataDir)).to.deep.equal(before);
  });

  it("firstStart() on a new bus restores the folder's old credentials", async () => {
    const dataDir = await newFolder();
    await firstStart({ actors: newActors(), dataDir, publicUrl, logger });
    const before = await read(dataDir);
    const actors = newActors();
    expect(await firstStart({ actors, dataDir, publicUrl, logger })).to.equal("made");
    expect(await read(dataDir)).to.deep.equal(before);
    await checkWorks(actors, before);
  });

  it("firstStart() replaces a truncated file", async () => {
    for (const text of ["", '{"base_url":"http://', '{"base_url":"x"']) {
      const actors = newActors();
      const dataDir = await newFolder();
      await writeFile(join(dataDir, "credentials.json.pending"), text);
      expect(await firstStart({ actors, dataDir, publicUrl, logger })).to.equal("made");
      expect(await readdir(dataDir)).to.deep.equal(["credentials.json"]);
      await checkWorks(actors, await read(dataDir));
    }
  });

  for (const name of ["credentials.json", "credentials.json.pending"]) {
    it(`firstStart() says in one line that ${name} is damaged, and what to do`, async () => {
      const damaged = ["[]", "{}", '{"base_url":"x"}', "null"];
      // These incomplete texts are damage only in credentials.json. In the pending file they are normal after a
      // process died, and the file is replaced.
      if (name === "credentials.json") damaged.push("", '{"base_url":"http://', "\0\0\0");
      for (const text of damaged) {
        const dataDir = await newFolder();
        const path = join(dataDir, name);
        await writeFile(path, text);
        const starting = firstStart({ actors: newActors(), dataDir, publicUrl, logger });
        const error = await starting.catch((thrown: unknown) => thrown);
        expect(error).to.include({ name: "Error" });
        expect(String(error)).to.include(`Cannot read "${path}": it holds no credentials; `);
        expect(String(error))
          .to.match(/delete it/)
          .and.not.include("\n");
        expect(await readFile(path, "utf8")).to.equal(text);
      }
    });
  }

  // A first start makes these calls in this order: claim, open, register, createToken, issue.
  for (let calls = 0; calls < 5; calls++) {
    for (const when of ["before", "after"] as const) {
      it(`firstStart() continues after it was killed ${when} call ${calls + 1}`, async () => {
        const actors = newActors();
        const dataDir = await newFolder();
        const dying = dyingAt(actors, calls, when);
        const died = await firstStart({ actors: dying, dataDir, publicUrl, logger }).catch(
          (error: unknown) => error,
        );
        expect(died).to.be.instanceOf(Death);
        expect(await readdir(dataDir)).to.deep.equal(["credentials.json.pending"]);
        // Now another process makes its first start. It creates the account only if the dead process had not claimed
        // it.
        const claimed = calls > 0 || when === "after";
        const other = await newFolder();
        const outcome = await firstStart({ actors, dataDir: other, publicUrl, logger });
        expect(outcome).to.equal(claimed ? "elsewhere" : "made");
        const again = await firstStart({ actors, dataDir, publicUrl, logger });
        expect(again).to.equal(claimed ? "made" : "elsewhere");
        const winner = claimed ? dataDir : other;
        expect(await readdir(winner)).to.deep.equal(["credentials.json"]);
        expect(await readdir(claimed ? other : dataDir)).to.deep.equal([]);
        await checkWorks(actors, await read(winner));
      });
    }
  }
});

class Death extends Error {}

/**
 * Returns a client of the actors that fails from the given call on: `when` decides whether that call still has its
 * effect.
 */
function dyingAt(actors: ActorClient, calls: number, when: "before" | "after"): ActorClient {
  let count = 0;
  const call: ActorClient["call"] = async (...parameters) => {
    const last = count++ === calls;
    if (last && when === "before") throw new Death();
    const reply = await actors.call(...parameters);
    if (last) throw new Death();
    return reply;
  };
  return { ...actors, call };
}

async function read(folder: string) {
  return JSON.parse(await readFile(join(folder, "credentials.json"), "utf8"));
}

async function checkWorks(
  actors: ActorClient,
  credentials: Awaited<ReturnType<typeof read>>,
): Promise<void> {
  const { account_id: accountId, api_token, user: person } = credentials;
  const { id, secretHash } = readToken(api_token) ?? never();
  const verified = await actors.call(apiToken, id, "verify", { secretHash });
  expect(verified).to.deep.equal({ accountId, permissions: ALL_PERMISSIONS });
  const { tokens } = await actors.call(account, accountId, "listTokens", {});
  expect(tokens.map((token) => token.id)).to.deep.equal([id]);
  const { members } = await actors.call(account, accountId, "get", {});
  const registered = await actors.call(user, person.email, "get", {});
  expect(members).to.deep.equal([
    { userId: registered.id, email: person.email, roles: ["Super Administrator"] },
  ]);
  expect(registered.accounts).to.deep.equal([{ accountId, roles: ["Super Administrator"] }]);
}

function never(): never {
  throw new Error("no token");
}
