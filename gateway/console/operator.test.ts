import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { HTTPRequest } from "puppeteer-core";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { REQUEST_HEADER, traceHeaders } from "../../actors/runtime/lib/trace.ts";
import { BLOB_STORE_BYTES_MIN } from "../../deploy/stream-declarations.ts";
import { account } from "../../schemas/account/account.ts";
import { user } from "../../schemas/account/user.ts";
import { mailIn } from "../../schemas/split-streams.ts";
import { TRACES_BYTES_MAX } from "../../schemas/store-limits.ts";
import { addressOf, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { until } from "../../scripts/testing/until.ts";
import { ConsoleWorld } from "./testing/console-world.ts";

/** Number of accounts: one more than a page of the list contains. */
const ACCOUNTS = 101;

describe("requests and operation in the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  let bus: Bus;
  before(async () => {
    world = await ConsoleWorld.start({ TRUNKLINE_SIGNUP: "open" });
    const { dataDir } = world.platform.instance;
    const url = (await readFile(join(dataDir, "nats.url"), "utf8")).trim();
    bus = await Bus.connect({ url, name: "test" });
  });
  after(async () => {
    await bus?.close();
    await world?.[Symbol.asyncDispose]();
  });
  afterEach(() => world.checkFaults());

  /** Creates a dead letter: sends mail that its receiver refuses, with this request id. */
  async function bury(requestId: string): Promise<void> {
    const address = addressOf("browser-time", world.platform.accountId);
    const mail = { from: "test", message: "used", input: { ms: "none" } };
    const letters = async () => (await bus.jetstream.streams.info(STREAMS.dead)).state.messages;
    const before = await letters();
    await bus.jetstream
      .jetstream()
      .publish(mailIn(0).to(shardOf(address), address), JSON.stringify(mail), {
        headers: traceHeaders({ [REQUEST_HEADER]: `0.${requestId}` }),
      });
    await until("the letter", async () => (await letters()) === before + 1);
  }

  it("shows hosts, queues and storage to the first user", async () => {
    await world.open("", "Home");
    await world.follow("Operator");
    await world.says("64: 0–63");
    await world.audit("operator-hosts");
    await world.follow("Queues");
    await world.says("render.");
    await world.audit("operator-queues");
    await world.follow("Storage");
    await world.says(STREAMS.traces);
    await world.audit("operator-storage");
  });

  it("marks a stream as nearly full only if it refuses writes when it is full", async () => {
    const { jetstream } = bus;
    const publish = (subject: string) => jetstream.jetstream().publish(subject, "{}");
    const sizes = [
      [STREAMS.traces, "trace.1", 200],
      [STREAMS.packs, "blob.git.x", 90],
    ] as const;
    for (const [stream, subject, messages] of sizes) {
      await jetstream.streams.update(stream, { max_bytes: 4_000 });
      await Promise.all(Array.from({ length: messages }, () => publish(subject)));
    }
    await world.open("operator/storage", "Operator");
    await world.says("nearly full");
    const marked = `[...document.querySelectorAll("tr")]
      .filter(({ innerText }) => innerText.includes("nearly full"))
      .map((row) => row.querySelector("code").innerText)`;
    expect(await world.page.evaluate(marked)).to.deep.equal([STREAMS.packs]);
    await jetstream.streams.purge(STREAMS.packs);
    await jetstream.streams.update(STREAMS.packs, { max_bytes: BLOB_STORE_BYTES_MIN });
    await jetstream.streams.update(STREAMS.traces, { max_bytes: TRACES_BYTES_MAX });
  });

  it("leads from an error to its request, and from a dead letter to the request that made it", async () => {
    const { accountId, credentials, url } = world.platform;
    await world.open("operator/dead-letters", "Operator");
    await world.says("There is no dead letter");
    const printed = await fetch(`${url}/v4/accounts/${accountId}/browser-rendering/pdf`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${credentials.api_token}`,
        "content-type": "application/json",
        "x-request-id": "made-it",
      },
      body: JSON.stringify({ html: "<h1>Hello</h1>" }),
    });
    expect(printed.status).to.equal(200);
    await printed.arrayBuffer();
    await bury("made-it");
    await world.says("made-it");
    await world.audit("operator-dead-letters");
    await world.follow("#1 used");
    await world.says('"ms": "none"');
    await world.audit("operator-dead-letter");
    await world.follow("made-it");
    await world.heading("Request made-it");
    await world.says("render pdf");
    await world.says("POST /accounts/{account_id}/browser-rendering/pdf");
    await world.says("message became a dead letter");
    await world.audit("request");
    await world.open("apps/nothing", "nothing");
    await world.says("It may have been deleted");
    const [, id = ""] = /Request (\S+)/.exec(await world.text()) ?? [];
    await world.follow(id);
    await world.heading(`Request ${id}`);
    await world.says("not found");
    await world.follow("Requests");
    await world.fill("Request id", "made-it");
    await world.audit("request-find");
    await world.press("Show");
    await world.says("render pdf");
  });

  it("sends a dead letter again, and drops it", async () => {
    await world.open("operator/dead-letters", "Operator");
    const sent: string[] = [];
    const note = (request: HTTPRequest) => {
      if (request.method() === "POST") sent.push(new URL(request.url()).pathname);
    };
    world.page.on("request", note);
    const retry = await world.page.waitForSelector('aria/Retry #1[role="button"]');
    await retry?.click({ count: 2 });
    await world.says("#1 is sent again.");
    // The receiver refuses the resent message again, so a new dead letter appears.
    await world.says("#2 used");
    world.page.off("request", note);
    expect(sent).to.deep.equal(["/v4/installation/dead-letters/1/retry"]);
    await world.openDialog("Drop #2");
    await world.confirm("Drop #2");
    await world.says("#2 is dropped.");
    await world.says("There is no dead letter");
  });

  it("says plainly that somebody else was quicker with a dead letter", async () => {
    await bury("raced");
    await world.open("operator/dead-letters/3", "Dead letter #3");
    const elsewhere = await world.elsewhere();
    const status = await elsewhere.evaluate(`fetch("/v4/installation/dead-letters/3", {
      method: "DELETE", headers: { "X-Trunkline-Session": "use" },
    }).then(({ status }) => status)`);
    expect(status).to.equal(200);
    await world.press("Retry #3");
    await world.heading("Operator");
    await world.says("#3 was gone already: somebody else has sent it again or dropped it.");
    await world.says("There is no dead letter");
    await world.page.reload();
    await world.says("There is no dead letter");
    expect(await world.text()).to.not.contain("#3 was gone already");
  });

  it("offers all accounts of a person, on however many pages their list is", async () => {
    const { body } = await world.platform.rest("GET", "/members");
    const userId: string = body.result[0].id;
    const { email } = world.platform.credentials.user;
    const actors = new BusActorClient(bus, systemClock);
    const roles = ["Administrator" as const];
    await Promise.all(
      Array.from({ length: ACCOUNTS }, async (_, number) => {
        const accountId = number.toString(16).padStart(32, "0");
        const owner = { userId, email, roles };
        await actors.call(account, accountId, "open", { name: `Harbour ${number}`, owner });
        await actors.send(user, email, "joined", { userId, accountId, roles });
      }),
    );
    const count = async () => (await actors.call(user, email, "get", {})).accounts.length;
    await until("they belong to all", async () => (await count()) === ACCOUNTS + 1);
    await world.open("", "Home");
    const offered = 'document.querySelectorAll(".account-picker option").length';
    expect(await world.page.evaluate(offered)).to.equal(ACCOUNTS + 1);
  });

  it("names another administrator by address and id, and hides all of it from other people", async () => {
    const { url } = world.platform;
    const email = "other@example.com";
    const other = await world.stranger(email);
    await other.goto(`${url}/console/account/sessions`);
    const shown = await other.waitForSelector("dl .copyable code");
    const id = String(await shown?.evaluate(({ textContent }) => textContent));
    const seen = async () => String(await other.evaluate("document.body.innerText"));
    expect(await seen())
      .to.contain("Requests")
      .and.not.contain("Operator");
    await world.open("operator/administrators", "Operator");
    const add = async (address: string, userId: string) => {
      await world.fill("E-mail address", address);
      await world.fill("User id", userId);
      await world.press("Add");
    };
    await add("nobody@example.com", id);
    await world.says("is unknown");
    // The given id is not that of the user with this email address, as if the address now belonged to somebody else.
    await add(email, "a".repeat(32));
    await world.says(`${email} has another id`);
    await add(email, id);
    await world.openDialog(`Remove ${email}`);
    await world.audit("operator-administrators");
    await other.goto(`${url}/console`);
    await other.waitForSelector('aria/Operator[role="link"]');
    await world.confirm(`Remove ${email}`);
    await other.goto(`${url}/console`);
    await other.waitForFunction(
      'document.querySelector("nav") && !document.querySelector("nav").innerText.includes("Operator")',
    );
  });
});
