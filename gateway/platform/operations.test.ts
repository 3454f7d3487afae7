import { createHmac, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { REQUEST_HEADER, traceHeaders } from "../../actors/runtime/lib/trace.ts";
import { SHARDS } from "../../schemas/limits.ts";
import { mailIn } from "../../schemas/split-streams.ts";
import { addressOf, deadSubject, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";
import { Person } from "../oauth/testing/oauth-world.ts";

const SECRET = "the provider's secret";
const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Repo extends Agent { onRequest() { return new Response("in"); } }
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

interface Step {
  way: string;
  name: string;
  key: string | null;
}

describe("operation of an installation by REST", function () {
  this.timeout(240_000);
  let platform: AppPlatform;
  /** Cookies of the first user, who is an administrator, and of another person with an account. */
  let first: string;
  let other: { cookie: string; email: string; accountId: string };
  let bus: Bus;
  before(async () => {
    platform = await AppPlatform.start({
      TRUNKLINE_SIGNUP: "open",
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
    });
    first = await signedIn("/login", (person) => person.signIn(platform.credentials.user));
    const email = "other@example.com";
    const given = { email, password: "correct horse" };
    const cookie = await signedIn("/signup", (person) => person.signUp(given));
    await fetch(`${platform.url}/console`, { headers: { cookie } });
    const accounts = await ask("/accounts", { cookie });
    other = { cookie, email, accountId: accounts.body.result[0].id };
    const url = (await readFile(join(platform.instance.dataDir, "nats.url"), "utf8")).trim();
    bus = await Bus.connect({ url, name: "test" });
  });
  after(async () => {
    await bus?.close();
    await platform?.[Symbol.asyncDispose]();
  });

  async function signedIn(path: string, act: (person: Person) => Promise<unknown>) {
    const person = new Person(platform.url);
    await person.open(path);
    await act(person);
    return [...person.cookies]
      .map(([name, { value }]) => `${name.split(";")[0]}=${value}`)
      .join("; ");
  }

  interface Asking {
    method?: string;
    cookie?: string;
    token?: string;
    json?: unknown;
    id?: string;
  }

  async function ask(path: string, { method = "GET", cookie, token, json, id }: Asking = {}) {
    const response = await fetch(`${platform.url}/v4${path}`, {
      method,
      headers: {
        ...(cookie !== undefined && {
          cookie,
          "X-Trunkline-Session": "use",
          Origin: platform.url,
        }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(json !== undefined && { "content-type": "application/json" }),
        ...(id !== undefined && { "x-request-id": id }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
    const body = (await response.json().catch(() => undefined)) as any;
    return { status: response.status, body };
  }

  /** Waits until the steps that the caller sees are complete, and returns them. */
  async function steps(path: string, by: Asking, isComplete: (found: Step[]) => boolean) {
    let found: Step[] = [];
    const read = async () => {
      found = (await ask(path, by)).body.result?.steps ?? [];
      return isComplete(found);
    };
    await until("the steps", read, 120_000).catch((error: unknown) => {
      throw new Error(JSON.stringify(found), { cause: error });
    });
    return found.map(({ way, name }) => `${way} ${name}`);
  }
  const has = (name: string) => (found: Step[]) =>
    found.some((step) => `${step.way} ${step.name}` === name);

  it("shows a PDF's way through gateway, actors and worker to its account, and all of it to administrators", async () => {
    const { account_id: account, api_token: token } = platform.credentials;
    const id = `pdf-${randomUUID()}`;
    const path = `/accounts/${account}/browser-rendering/pdf`;
    const json = { html: "<h1>Hello</h1>" };
    expect((await ask(path, { method: "POST", token, json, id })).status).to.equal(200);
    // Another account uses the same request id. Neither account sees the steps of the other.
    await ask(`/accounts/${other.accountId}/tokens`, { cookie: other.cookie, id });
    const own = `/accounts/${account}/requests/${id}`;
    const way = await steps(own, { token }, has("call browser-time used"));
    expect(way).to.include.members([
      "request POST /accounts/{account_id}/browser-rendering/pdf",
      "call api-token verify",
      "task render pdf",
    ]);
    expect(way.join()).to.not.contain("/tokens");
    const { result } = (await ask(own, { token })).body;
    expect(result.steps[0]).to.deep.include({ way: "request", status: 200, error: null });
    for (const { way: kind, key } of result.steps as Step[]) {
      if (kind !== "request") expect(key === null || key === account, String(key)).to.equal(true);
    }
    const theirs = await steps(
      `/accounts/${other.accountId}/requests/${id}`,
      { cookie: other.cookie },
      has("request GET /accounts/{account_id}/tokens"),
    );
    expect(theirs.join()).to.not.contain("pdf");
    const all = await steps(`/installation/requests/${id}`, { cookie: first }, (found) =>
      has("request GET /accounts/{account_id}/tokens")(found),
    );
    expect(all).to.include("task render pdf");
    expect((await ask(`/accounts/${account}/requests/nothing`, { token })).status).to.equal(404);
    expect((await ask(`/accounts/${account}/requests/a%20b`, { token })).status).to.equal(400);
  });

  it("shows a webhook's way over the inbox to its agent", async () => {
    const { account_id: account, api_token: token } = platform.credentials;
    expect((await platform.deploy("hooks", BUNDLE, CONFIG)).status).to.equal(200);
    await platform.rest("PUT", "/apps/hooks/secrets/HOOK", { value: SECRET });
    const body = JSON.stringify({ repository: { full_name: "acme/tools" } });
    const asked = await platform.ask("hooks", "/in/github", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-github-event": "push",
        "x-github-delivery": randomUUID(),
        "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      },
      body,
    });
    expect(asked.status, asked.text).to.equal(202);
    const path = `/accounts/${account}/requests/${asked.headers["x-request-id"]}`;
    const way = await steps(path, { token }, has("mail agent deliver"));
    expect(way).to.include.members(["request POST app hooks", "call agent-inbox receive"]);
  });

  it("shows a clone of git to the repository's account, and no path that may hold a secret", async () => {
    const { account_id: account, api_token: token } = platform.credentials;
    const trace = async (path: string) => {
      const { headers } = await fetch(platform.url + path);
      return String(headers.get("x-request-id"));
    };
    const git = `/git/${account}/default/none.git/info/refs`;
    const route = "request GET /git/{account_id}/{namespace}/{name}.git/info/refs";
    await steps(
      `/accounts/${account}/requests/${await trace(`${git}?service=git-upload-pack`)}`,
      { token },
      has(route),
    );
    const page = await trace("/live-view/secret?token=secret");
    await steps(`/installation/requests/${page}`, { cookie: first }, has("request GET /live-view"));
  });

  it("shows no probes of health and metrics, which would displace the requests of clients", async () => {
    for (const path of ["/healthz", "/livez", "/metrics"]) {
      const probe = await fetch(platform.url + path, { headers: { "x-request-id": "probe" } });
      await probe.arrayBuffer();
    }
    await ask("/accounts", { cookie: first, id: "after" });
    const later = "/installation/requests/after";
    await steps(later, { cookie: first }, has("request GET /accounts"));
    const probes = await ask("/installation/requests/probe", { cookie: first });
    expect(probes.status).to.equal(404);
  });

  it("refuses other people and tokens", async () => {
    const { api_token: token } = platform.credentials;
    const routes = [
      ["GET", "/installation/hosts"],
      ["GET", "/installation/queues"],
      ["GET", "/installation/storage"],
      ["GET", "/installation/dead-letters"],
      ["GET", "/installation/dead-letters/1"],
      ["POST", "/installation/dead-letters/1/retry"],
      ["DELETE", "/installation/dead-letters/1"],
      ["GET", "/installation/requests/x"],
      ["GET", "/installation/administrators"],
      ["POST", "/installation/administrators"],
      ["DELETE", `/installation/administrators/${"0".repeat(32)}`],
    ] as const;
    for (const [method, path] of routes) {
      const json = method === "POST" ? { json: { email: other.email } } : {};
      for (const by of [{ cookie: other.cookie }, { token }]) {
        expect((await ask(path, { method, ...by, ...json })).status, path).to.equal(403);
      }
      expect((await ask(path, { method, ...json })).status, path).to.equal(401);
    }
  });

  it("shows hosts and shards, lanes, and streams with the disk", async () => {
    // A host that stood still for longer than its lease has no shards for a moment.
    const { hosts } = await until("all shards have the host", async () => {
      const { result } = (await ask("/installation/hosts", { cookie: first })).body;
      return result.unowned_shards.length === 0 && result.hosts.length === 1 && result;
    });
    expect(hosts[0]).to.deep.include({ lease: "held" });
    expect(hosts[0].shards).to.have.length(SHARDS);
    const { lanes, dead_letters } = (await ask("/installation/queues", { cookie: first })).body
      .result;
    expect(lanes.map(({ kind }: { kind: string }) => kind)).to.include("render");
    expect(lanes[0]).to.have.all.keys("kind", "lane", "waiting", "running", "oldest_on", "is_full");
    expect(dead_letters).to.equal(0);
    const storage = (await ask("/installation/storage", { cookie: first })).body.result;
    expect(storage.disk_free_bytes).to.be.above(0);
    const names = storage.streams.map(({ name }: { name: string }) => name);
    expect(names).to.include.members([STREAMS.mail, STREAMS.traces]);
    const limits = (of: string) => {
      const { bytes_max: max, refuses_when_full: refuses } = storage.streams.find(
        ({ name }: { name: string }) => name === of,
      );
      return [max !== null, refuses];
    };
    expect([STREAMS.packs, STREAMS.traces, STREAMS.dead].map(limits)).to.deep.equal([
      [true, true],
      [true, false],
      [false, false],
    ]);
  });

  it("lists dead letters with the request that made them, sends one again, and drops one", async () => {
    const { account_id: account } = platform.credentials;
    const address = addressOf("browser-time", account);
    const bury = (request: string) =>
      bus.jetstream
        .jetstream()
        .publish(
          mailIn(0).to(shardOf(address), address),
          JSON.stringify({ from: "test", message: "used", input: { ms: "none" } }),
          { headers: traceHeaders({ [REQUEST_HEADER]: `0.${request}` }) },
        );
    await bury("made-it");
    const list = async (query = "") =>
      (await ask(`/installation/dead-letters${query}`, { cookie: first })).body.result;
    await until("the letter", async () => (await list()).length === 1);
    const [letter] = await list();
    expect(letter).to.deep.include({ address, message: "used", request_id: "made-it" });
    expect(letter).to.deep.include({ is_task: false, tries: 1 });
    const one = `/installation/dead-letters/${letter.sequence}`;
    expect((await ask(one, { cookie: first })).body.result.input).to.deep.equal({ ms: "none" });
    expect((await ask(`${one}/retry`, { method: "POST", cookie: first })).status).to.equal(200);
    expect((await ask(one, { cookie: first })).status).to.equal(404);
    // The receiver refuses the retried message again. The new dead letter has the same request id.
    await until("the next letter", async () => (await list()).length === 1);
    expect((await list())[0].request_id).to.equal("made-it");
    await bury("made-it-too");
    await until("both", async () => (await list()).length === 2);
    const [next, last] = await list();
    expect(await list(`?per_page=5&after=${next.sequence}`)).to.deep.equal([last]);
    const dropping = { method: "DELETE", cookie: first };
    for (const { sequence } of [next, last]) {
      const dropped = await ask(`/installation/dead-letters/${sequence}`, dropping);
      expect(dropped.status).to.equal(200);
    }
    expect(await list()).to.deep.equal([]);
    expect((await ask(one, dropping)).status).to.equal(404);
    expect((await ask("/installation/dead-letters/0", { cookie: first })).status).to.equal(400);
  });

  it("one of a retry and a drop at the same moment wins, and the other is refused", async () => {
    const letters = async () =>
      (await ask("/installation/dead-letters", { cookie: first })).body.result;
    const subject = deadSubject(addressOf("account", platform.credentials.account_id));
    const letter = { message: "unknown", error: "refused", tries: 1, buriedAt: Date.now() };
    await bus.jetstream.jetstream().publish(subject, JSON.stringify(letter));
    const [{ sequence }] = await letters();
    const path = `/installation/dead-letters/${sequence}`;
    const acts = await Promise.all([
      ask(`${path}/retry`, { method: "POST", cookie: first }),
      ask(path, { method: "DELETE", cookie: first }),
    ]);
    const statuses = acts.map(({ status }) => status).sort();
    expect(statuses[0]).to.equal(200);
    expect(statuses[1]).to.be.oneOf([404, 409]);
    const [refused] = acts.filter(({ status }) => status !== 200);
    expect(refused?.body.errors[0].message).to.match(/^Cannot (retry|drop|find) dead letter \d+: /);
    // If the retry won, there is a new dead letter, because the actor does not know the message.
    for (const one of await letters()) {
      await ask(`/installation/dead-letters/${one.sequence}`, { method: "DELETE", cookie: first });
    }
  });

  it("names nobody who signed up with the address of another person", async () => {
    const path = "/installation/administrators";
    // Addresses are not verified, so another person may have signed up with this one.
    const { email } = other;
    const ofThePerson = "a".repeat(32);
    for (const json of [{ email }, { email, user_id: ofThePerson }]) {
      const { status, body } = await ask(path, { method: "POST", cookie: first, json });
      expect(status).to.equal(400);
      expect(JSON.stringify(body.errors)).to.contain("/user_id");
    }
    expect((await ask(path, { cookie: other.cookie })).status).to.equal(403);
  });

  it("lets administrators add others, and keeps the last one", async () => {
    const path = "/installation/administrators";
    const email = other.email;
    const [me] = (await ask(path, { cookie: first })).body.result;
    expect(me.email).to.equal(platform.credentials.user.email);
    const { id: user_id } = (await ask("/user", { cookie: other.cookie })).body.result;
    const add = (json: unknown) => ask(path, { method: "POST", cookie: first, json });
    expect((await add({ user_id, email: "nobody@example.com" })).status).to.equal(404);
    expect((await add({ user_id, email: "no address" })).status).to.equal(400);
    const added = (await add({ user_id, email })).body.result;
    await add({ user_id, email });
    expect((await ask(path, { cookie: other.cookie })).body.result).to.deep.equal([me, added]);
    const remove = (userId: string, cookie: string) =>
      ask(`${path}/${userId}`, { method: "DELETE", cookie });
    expect((await remove(added.user_id, other.cookie)).status).to.equal(200);
    expect((await ask(path, { cookie: other.cookie })).status).to.equal(403);
    expect((await remove(added.user_id, first)).status).to.equal(404);
    expect((await remove(me.user_id, first)).status).to.equal(409);
  });
});
