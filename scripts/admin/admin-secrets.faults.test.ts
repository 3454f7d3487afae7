import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { appActor } from "../../actors/apps/app/app.ts";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { outgoingWebhookActor } from "../../actors/apps/outgoing-webhook/outgoing-webhook.ts";
import { TASKS } from "../../actors/main.ts";
import { renderJobsActor } from "../../actors/rendering/render-jobs/render-jobs.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { app } from "../../schemas/apps/app.ts";
import { NO_APP, OUTGOING_SECRET, outgoingWebhook } from "../../schemas/apps/outgoing-webhook.ts";
import { crawlRequestBlob, encryptCrawlRequest } from "../../schemas/crawl/stored-request.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { renderJobs } from "../../schemas/rendering/render-jobs.ts";
import { requestKeyName } from "../../schemas/rendering/request-key.ts";
import { stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { startWorld } from "../testing/actor-world.ts";
import { runCommand } from "../testing/command-line.ts";
import { SecuredNats } from "../testing/secured-nats.ts";
import { until } from "../testing/until.ts";

const MAIN = join(import.meta.dirname, "../trunkline.ts");
const ACCOUNT = "a".repeat(32);
const KEY = `${ACCOUNT}.hooks`;
const AGENT = `${KEY}.Counter.one`;

describe("admin secrets", function () {
  this.timeout(120_000);

  it("ends with one line for a user that may not read states", async () => {
    await using nats = await SecuredNats.start();
    const bus = await Bus.connect({ ...nats.login("admin"), name: "test" });
    await declareStreams(bus.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks: [] });
    const row = stateSubjects(stateBucket(0)).row(`${app.kind}.${KEY}`, "secret.ONE");
    await bus.jetstream.jetstream().publish(row, "{}");
    await bus.close();
    const { code, stderr } = await runCommand(process.execPath, [MAIN, "admin", "secrets"], {
      ...nats.settings("operator"),
      TRUNKLINE_SECRETS_KEY: newSecretKey(),
    });
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Cannot ask the bus: this user may not .*; use that of admin\.nk\n$/);
  });

  it("makes no key on a machine that has none, and says what to set", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-secrets-"));
    try {
      const { code, stderr } = await runCommand(process.execPath, [MAIN, "admin", "secrets"], {
        TRUNKLINE_DATA: folder,
        TRUNKLINE_SECRETS_KEY: "",
      });
      expect(code).to.equal(1);
      expect(stderr).to.match(
        /^Cannot show the keys of secrets: .* set TRUNKLINE_SECRETS_KEY .*\n$/,
      );
      expect(await readdir(folder)).to.deep.equal([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("seals the secrets of apps with the newest key, and reports when an older key is no longer needed", async () => {
    const [old, recent] = [newSecretKey(), newSecretKey()];
    const [oldBox, box] = [new SecretBox([old]), new SecretBox([recent, old])];
    await using world = await startWorld({
      definitions: [appActor, outgoingWebhookActor, renderJobsActor],
      tasks: TASKS,
    });
    await world.host();
    const seal = (name: string, by = oldBox) =>
      by.seal(`value of ${name}`, { accountId: ACCOUNT, app: "hooks", name });
    for (const name of ["ONE", "TWO"]) {
      await world.client.call(app, KEY, "putSecret", { name, sealed: seal(name) });
    }
    await world.client.call(app, KEY, "putSecret", { name: "NEW", sealed: seal("NEW", box) });
    const [recentId, oldId] = box.keyIds;
    const run = async (parameters: string[], keys: string) => {
      const { code, stdout, stderr } = await runCommand(
        process.execPath,
        [MAIN, "admin", "secrets", ...parameters],
        { TRUNKLINE_NATS_URL: world.url, TRUNKLINE_SECRETS_KEY: keys },
      );
      expect(code, stderr).to.equal(0);
      return stdout.trim().replaceAll(/ {2,}/g, " ").split("\n");
    };
    const both = `${recent},${old}`;
    // The next checkpoint writes the rows to their keys on the bus. This happens shortly after the commit.
    await until(
      "all are counted",
      async () => (await run([], both)).at(2) === `${oldId} 2 0 still needed`,
    );
    expect((await run([], recent)).at(-1)).to.equal(
      `${oldId} 2 0 missing: add it to TRUNKLINE_SECRETS_KEY`,
    );
    expect((await run(["reseal"], both)).at(0)).to.equal("2 of 2 secrets sealed anew");
    await until(
      "they are stored",
      async () => (await run([], both)).at(1) === `${recentId} 3 0 seals`,
    );
    expect(await run(["reseal"], both)).to.deep.equal([
      "0 of 0 secrets sealed anew",
      "",
      "KEY SECRETS OF APPS OF WEBHOOKS AND JOBS USE",
      `${recentId} 3 0 seals`,
      `${oldId} 0 0 no longer needed`,
    ]);
    // An outgoing webhook stores the secret that user code gave it. The webhook, with its secret, is removed at the
    // latest 30 days after it has ended.
    await world.client.call(outgoingWebhook, AGENT, "send", {
      id: "first",
      url: "https://example.com/hook",
      payload: { text: "{}" },
      payloadBytes: 2,
      secret: { sealed: seal(OUTGOING_SECRET) },
    });
    await until(
      "it is counted",
      async () => (await run([], both)).at(2) === `${oldId} 0 1 still needed`,
    );
    // A rendering job stores the key of its request until the job ends.
    const job = "1".repeat(32);
    const [accountId, name] = [ACCOUNT, requestKeyName(job)];
    const requestKey = oldBox.seal("key", { accountId, app: NO_APP, name });
    const room = { requestBytes: 1, bytesMax: 1_000 };
    const created = { ...room, id: job, call: "pdf" as const, cacheTtlS: 0, requestKey };
    await world.client.call(renderJobs, ACCOUNT, "create", created);
    await until(
      "it is counted",
      async () => (await run([], both)).at(2) === `${oldId} 0 2 still needed`,
    );
    await world.client.call(renderJobs, ACCOUNT, "cancel", { id: job });
    await until(
      "it is counted no more",
      async () => (await run([], both)).at(2) === `${oldId} 0 1 still needed`,
    );
    // A crawl also stores the key of its request until it ends. Requests that earlier versions stored are not
    // encrypted.
    const blobs = new BlobStore(world.bus, systemClock);
    const request = await encryptCrawlRequest(Buffer.alloc(600_000, "{}"), () => requestKey);
    await blobs.put(crawlRequestBlob(job), request);
    await blobs.put(crawlRequestBlob("2".repeat(32)), Buffer.from("{}"));
    expect((await run([], both)).at(2)).to.equal(`${oldId} 0 2 still needed`);
    await blobs.removeAll(crawlRequestBlob(job));
    expect((await run([], both)).at(2)).to.equal(`${oldId} 0 1 still needed`);
  });

  it("seals all other secrets anew when no key opens one, and names that secret", async () => {
    const [lost, old, recent] = [newSecretKey(), newSecretKey(), newSecretKey()];
    await using world = await startWorld({ definitions: [appActor], tasks: TASKS });
    await world.host();
    for (const [name, key] of [
      ["AFTER", old],
      ["BEFORE", old],
      ["LOST", lost],
    ] as const) {
      const sealed = new SecretBox([key]).seal("v", { accountId: ACCOUNT, app: "hooks", name });
      await world.client.call(app, KEY, "putSecret", { name, sealed });
    }
    const run = async (...parameters: string[]) => {
      const ended = await runCommand(process.execPath, [MAIN, "admin", "secrets", ...parameters], {
        TRUNKLINE_NATS_URL: world.url,
        TRUNKLINE_SECRETS_KEY: `${recent},${old}`,
      });
      return { ...ended, lines: ended.stdout.trim().replaceAll(/ {2,}/g, " ").split("\n") };
    };
    const [recentId, oldId] = new SecretBox([recent, old]).keyIds;
    const [lostId] = new SecretBox([lost]).keyIds;
    await until(
      "all are counted",
      async () => (await run()).lines.at(2) === `${oldId} 2 0 still needed`,
    );
    const { code, lines, stderr } = await run("reseal");
    expect(code).to.equal(1);
    expect(lines.at(0)).to.equal("2 of 3 secrets sealed anew");
    expect(lines.at(-1)).to.equal(`${lostId} 1 0 missing: add it to TRUNKLINE_SECRETS_KEY`);
    const [first, second = "", ...others] = stderr.trimEnd().split("\n");
    expect(first).to.equal("Cannot seal all secrets anew: no key opens 1 of them");
    expect(second).to.include(`account ${ACCOUNT}: Cannot open secret LOST of app hooks`);
    expect(second).to.include(String(lostId)).and.not.include(lost);
    expect(others).to.deep.equal([]);
    await until(
      "the others are stored",
      async () => (await run()).lines.at(1) === `${recentId} 2 0 seals`,
    );
  });
});
