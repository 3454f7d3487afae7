import { createHmac, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { mailIn } from "../../schemas/split-streams.ts";
import { addressOf, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { until } from "../../scripts/testing/until.ts";
import { ConsoleWorld } from "./testing/console-world.ts";
import { HOSTILE_CORPUS } from "./testing/hostile-texts.ts";

const SECRET = "the provider's secret";
const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Repo extends Agent {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS texts (text TEXT)\`; }
  async onRequest(request) {
    const texts = await request.json();
    for (const text of texts.all ?? []) {
      console.log(text);
      console.error(text);
      this.sql\`INSERT INTO texts VALUES (\${text})\`;
    }
    if (texts.all) this.setState({ texts: texts.all, [texts.all[0]]: 1 });
    return new Response("ok");
  }
  echo(text) { return { [text]: text }; }
  fail(text) { throw new Error(text); }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;
const CONFIG = {
  agents: [{ binding: "REPO", class_name: "Repo" }],
  webhooks: [
    {
      ...{ path: "/in/github", provider: "github" as const, secret: "HOOK", agent: "REPO" },
      entity: { body: "/repository/full_name" },
    },
  ],
};
/** Names of tokens and clients may contain no invisible characters, so only texts of printable ASCII are names. */
const NAMES = HOSTILE_CORPUS.filter((text) => /^[ -~]+$/.test(text));
const ALL = HOSTILE_CORPUS.join("\n");
/** Names of agents and values of headers must be one line of visible characters, so they use these two texts. */
const [FIRST = "", SECOND = ""] = HOSTILE_CORPUS;
const SELECTOR = `[title="${FIRST}"]`;

describe("hostile texts in every field of the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());

  it("are shown as text, and run nothing", async () => {
    await writeNames();
    await writeApp();
    const letter = await writeDeadLetter();
    await writeJob();
    const { client_id: client } = (await world.platform.rest("GET", "/oauth_clients")).body
      .result[0];
    const agent = encodeURIComponent(FIRST);
    const pages: [path: string, texts: readonly string[]][] = [
      ["", ["window.hacked=1"]],
      ["account", [FIRST]],
      ["oauth-clients", ["window.hacked=1"]],
      [`oauth-clients/${client}`, []],
      [`oauth-clients/${client}/settings`, []],
      ["repositories", [FIRST]],
      ["repositories/default/hostile", [FIRST]],
      ["repositories/default/hostile/settings", []],
      ["crawls", []],
      ["rendering/jobs", [SELECTOR]],
      ["apps/hooks/agents", [FIRST]],
      [`apps/hooks/agents/Repo/${agent}`, HOSTILE_CORPUS.map((text) => JSON.stringify(text))],
      ["apps/hooks/log", HOSTILE_CORPUS],
      ["webhooks/hooks/Repo/hostile", [FIRST]],
      ["webhooks/hooks/Repo/hostile/1", [FIRST, SECOND]],
      ["operator/dead-letters", [FIRST]],
      [`operator/dead-letters/${letter}`, HOSTILE_CORPUS.map((text) => JSON.stringify(text))],
      [`requests/${agent}`, [FIRST]],
      [`apps/${agent}`, [FIRST]],
      [`${agent}/${agent}`, []],
      [`crawls/${agent}`, []],
      [`repositories/${agent}/${agent}/file/${agent}`, [FIRST]],
    ];
    for (const [path, texts] of pages) {
      const { accountId, url } = world.platform;
      await world.page.goto(`${url}/console/${accountId}/${path}`);
      await world.page.waitForSelector("h1");
      await world.settled();
      for (const text of texts) await world.says(text);
      if (path === "oauth-clients") await world.audit("clients");
      expect(await world.isHacked(), path).to.equal(false);
      expect(world.faults, path).to.deep.equal([]);
    }
  });

  it("lead no request away from its path", async () => {
    const { accountId, url } = world.platform;
    const name = encodeURIComponent("../../evil?x=1");
    const asked: string[] = [];
    world.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const agent = `${name}/${name}/${name}`;
    for (const path of [
      ...[`account/tokens/${name}`, `oauth-clients/${name}`, `crawls/${name}`, `requests/${name}`],
      ...["", "/agents", "/log", "/secrets", `/agents/${name}/${name}`].map(
        (page) => `apps/${name}${page}`,
      ),
      ...["", "/sent", `/${name}`, `/sent/${name}`].map((page) => `webhooks/${agent}${page}`),
      ...[`webhooks?app=${name}`, `webhooks/${name}/endpoints/${name}/test`],
      ...["", "/history", "/branches", "/tokens", "/compare", `/commit/${name}`].map(
        (page) => `repositories/${name}/${name}${page}`,
      ),
      ...[`repositories/${name}`, `operator/dead-letters/${name}`],
    ]) {
      asked.length = 0;
      await world.page.goto(`${url}/console/${accountId}/${path}`);
      await world.page.waitForSelector("h1");
      await world.settled();
      const below = asked.filter((one) => one.startsWith("/v4/"));
      expect(below, path).to.match(/%2Fevil|\/v4\/accounts\?/);
      expect(
        asked.filter((one) => /\/evil(\/|$)/.test(one)),
        path,
      ).to.deep.equal([]);
    }
    world.checkFaults();
  });

  it("run nothing as result, error and rows of an agent", async () => {
    await world.open(`apps/hooks/agents/Repo/${encodeURIComponent(FIRST)}`, FIRST);
    await world.press("texts");
    await world.press("Run");
    await world.page.waitForSelector("table.grid");
    for (const [method, shown] of [
      ["echo", JSON.stringify(FIRST)],
      ["fail", FIRST],
      [FIRST, `Method ${FIRST} does not exist`],
    ] as const) {
      await world.fill("Method", method);
      await world.fill("Arguments", JSON.stringify([FIRST]));
      await world.press("Call");
      await world.says(shown);
    }
    expect(await world.isHacked()).to.equal(false);
    world.checkFaults();
  });

  /** Creates a token and a client with each text as the name, and a repository with a text as the description. */
  async function writeNames(): Promise<void> {
    const { platform } = world;
    const made = async (path: string, json: unknown) => {
      const { status, body } = await platform.rest("POST", path, json);
      expect(status, JSON.stringify([json, body])).to.be.below(300);
    };
    await made("/artifacts/namespaces/default/repos", { name: "hostile", description: FIRST });
    for (const name of NAMES) {
      const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
      await made("/tokens", { name, policies });
      await made("/oauth_clients", {
        client_name: name,
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: ["https://bot.example.com/callback"],
        scopes: ["openid"],
        token_endpoint_auth_method: "none",
      });
    }
  }

  /**
   * Deploys an app. Creates an agent with the hostile texts in its name, state, rows and log, and a delivery with
   * hostile texts in its headers and body.
   */
  async function writeApp(): Promise<void> {
    const { platform } = world;
    expect((await platform.deploy("hooks", BUNDLE, CONFIG)).status).to.equal(200);
    await platform.rest("PUT", "/apps/hooks/secrets/HOOK", { value: SECRET });
    const path = `/agents/repo/${encodeURIComponent(FIRST)}`;
    const body = JSON.stringify({ all: HOSTILE_CORPUS });
    expect((await platform.ask("hooks", path, { method: "POST", body })).status).to.equal(200);
    const event = JSON.stringify({ repository: { full_name: "hostile" }, text: ALL });
    const told = await platform.ask("hooks", "/in/github", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-hostile": SECOND,
        "x-github-event": FIRST,
        "x-github-delivery": randomUUID(),
        "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(event).digest("hex")}`,
      },
      body: event,
    });
    expect(told.status, told.text).to.equal(202);
  }

  /** Creates a rendering job that fails with a text in its error. */
  async function writeJob(): Promise<void> {
    const { accountId, credentials, url } = world.platform;
    const started = await fetch(`${url}/v4/accounts/${accountId}/browser-rendering/screenshot`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${credentials.api_token}`,
        "content-type": "application/json",
        prefer: "respond-async",
      },
      body: JSON.stringify({ html: "x", selector: SELECTOR }),
    });
    expect(started.status, await started.text()).to.equal(202);
  }

  async function writeDeadLetter(): Promise<number> {
    const url = await readFile(join(world.platform.instance.dataDir, "nats.url"), "utf8");
    const bus = await Bus.connect({ url: url.trim(), name: "test" });
    const address = addressOf("account", world.platform.accountId);
    const mail = { from: FIRST, message: FIRST, input: HOSTILE_CORPUS };
    const subject = mailIn(0).to(shardOf(address), address);
    await bus.jetstream.jetstream().publish(subject, JSON.stringify(mail));
    const letters = async () => (await bus.jetstream.streams.info(STREAMS.dead)).state;
    await until("the letter", async () => (await letters()).messages === 1);
    const { last_seq: sequence } = await letters();
    await bus.close();
    return sequence;
  }
});
