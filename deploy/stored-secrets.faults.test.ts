/**
 * Gives a whole platform every kind of secret of its clients, and reads all that its bus stores and all that it logs.
 * Then restores a backup: crawls and rendering jobs continue only with the key that seals their requests.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { newSecretKey } from "../actors/apps/lib/app-secrets/secret-box.ts";
import { Bus } from "../actors/runtime/bus/bus.ts";
import { STREAMS } from "../schemas/subjects.ts";
import { runCommand } from "../scripts/testing/command-line.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { RoleProcess } from "../scripts/testing/role-process.ts";
import { storedTexts, textsWith } from "../scripts/testing/stored-texts.ts";
import { until } from "../scripts/testing/until.ts";
import { WebSite } from "../scripts/testing/web-site.ts";
import { REPOSITORY } from "../scripts/tools.ts";

/**
 * Maximum time until a restored crawl or job has continued. A page that hangs is tried for minutes, and the turn of a
 * killed worker is free again only after a minute.
 */
const CONTINUED_MS_MAX = 300_000;
const COOKIE = "planted-cookie";
const PAGE_SECRETS = [COOKIE, "planted-password", "planted-header", "planted-authorization"];
const WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const APP_SECRET = "planted-app-secret";

interface Account {
  /** Without a slash at its end. */
  url: string;
  token: string;
}

describe("stored secrets", function () {
  this.timeout(600_000);
  let started: AsyncDisposableStack;
  let folder: string;
  let site: WebSite;
  let received: Map<string, IncomingHttpHeaders[]>;
  let mayAnswer: boolean;
  let instances: RoleProcess[];
  beforeEach(async () => {
    started = new AsyncDisposableStack();
    folder = await mkdtemp(join(tmpdir(), "trunkline-secrets-"));
    // If we are root, browsers run as another user and have their profiles here.
    await chmod(folder, 0o755);
    started.defer(() => rm(folder, { recursive: true, maxRetries: 10 }));
    site = started.use(await WebSite.start());
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    received = new Map();
    mayAnswer = false;
    instances = [];
    for (const path of ["/crawl", "/job", "/now"]) {
      site.page(path, ({ headers }, response) => {
        received.set(path, [...(received.get(path) ?? []), headers]);
        // Answers only the page of the crawl. The other pages hang, so that no AI model gets a request about them.
        if (mayAnswer && path === "/crawl") response.end("<p>answered");
      });
    }
  });
  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      for (const { lines } of instances) console.log(lines.slice(-40).join("\n"));
    }
    await started.disposeAsync();
  });

  const start = async (name: string, url: string, keys: string) => {
    const instance = await RoleProcess.start(name, folder, {
      TRUNKLINE_NATS_URL: url,
      TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
      TRUNKLINE_SECRETS_KEY: keys,
    });
    instances.push(started.use(instance));
    await instance.ready();
    return instance;
  };
  const stop = async (instance: RoleProcess) => {
    // Kills the instance, because a graceful stop would wait for the pages that hang.
    instance.signal("SIGKILL");
    await instance.exit();
  };
  const admin = async (verb: string, environment: NodeJS.ProcessEnv) => {
    const program = join(REPOSITORY, "scripts/trunkline.ts");
    const parameters = [program, "admin", verb, join(folder, "backup")];
    const { code, stderr } = await runCommand(process.execPath, parameters, environment);
    expect(code, stderr).to.equal(0);
  };

  it("are sealed or hashed in every stream and in the log, and a restored platform opens them with their key", async () => {
    const [old, recent] = [newSecretKey(), newSecretKey()];
    const nats = started.use(await startNats());
    const first = await start("first", nats.url, old);
    const credentials = await first.credentials();
    const account = {
      url: `${first.url}/v4/accounts/${credentials.account_id}`,
      token: credentials.api_token,
    };
    const made = await makeSecrets(account);
    const crawl = await post<string>(account, "/browser-rendering/crawl", {
      ...{ render: false, source: "links" },
      ...pageParameters("/crawl"),
    });
    const job = await post<{ id: string }>(
      account,
      "/browser-rendering/json",
      {
        ...{ ...pageParameters("/job"), gotoOptions: { timeout: 60_000 } },
        webhook: { url: "https://example.com/hook", secret: WEBHOOK_SECRET },
      },
      { Prefer: "respond-async" },
    );
    const now = post(account, "/browser-rendering/json", pageParameters("/now"));
    now.catch(() => {}); // It ends with its gateway.
    await until("all pages are requested", () => received.size === 3, CONTINUED_MS_MAX);
    for (const [path, [headers]] of received) {
      expect(headers?.["x-opens"], path).to.equal("planted-header");
      expect(headers?.cookie, path).to.equal(`session=${COOKIE}`);
    }

    const texts = await textsOf(nats.url);
    for (const id of [crawl, job.id]) expect(textsWith(id, texts)).to.have.length.above(3);
    const secrets = [
      ...[...PAGE_SECRETS, WEBHOOK_SECRET, APP_SECRET, ...made],
      ...[account.token, credentials.user.password],
    ];
    for (const secret of secrets) {
      expect(textsWith(secret, [...texts, ...first.lines]), secret).to.deep.equal([]);
    }

    await admin("backup", { TRUNKLINE_NATS_URL: nats.url });
    await stop(first);
    const other = started.use(await startNats());
    await admin("restore", { TRUNKLINE_NATS_URL: other.url });
    received.clear();
    const without = await start("without", other.url, recent);
    await until(
      "the log names the missing key",
      () => without.lines.some((line) => line.includes("not opened") && line.includes(crawl)),
      CONTINUED_MS_MAX,
    );
    const status = async ({ url }: RoleProcess) => {
      const at = { ...account, url: account.url.replace(first.url, url) };
      const { status, records } = await get<Crawled>(at, `/browser-rendering/crawl/${crawl}`);
      return status === "running" ? status : [status, records[0]?.status, records[0]?.html];
    };
    expect(await status(without)).to.equal("running");
    expect(received.get("/crawl")).to.equal(undefined);
    await stop(without);
    mayAnswer = true;
    const rotated = await start("rotated", other.url, `${recent},${old}`);
    const isEnded = async () => (await status(rotated)) !== "running";
    await until("the crawl has ended", isEnded, CONTINUED_MS_MAX);
    expect(await status(rotated)).to.deep.equal(["completed", "completed", "<p>answered"]);
    const [headers] = received.get("/crawl") ?? [];
    expect(headers?.cookie).to.equal(`session=${COOKIE}`);
  });

  function pageParameters(path: string) {
    const url = site.url + path;
    const model = { model: "openai/gpt-4o", authorization: `Bearer ${PAGE_SECRETS[3]}` };
    return {
      url,
      cookies: [{ name: "session", value: COOKIE, url }],
      authenticate: { username: "user", password: PAGE_SECRETS[1] },
      setExtraHTTPHeaders: { "X-Opens": PAGE_SECRETS[2] },
      ...(path !== "/crawl" && { prompt: "All prices", custom_ai: [model] }),
    };
  }
});

interface Crawled {
  status: string;
  records: { status: string; html?: string }[];
}

/** Creates secrets that the platform shows only once, such as tokens, and returns them. */
async function makeSecrets(account: Account): Promise<string[]> {
  const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
  const token = await post<{ value: string }>(account, "/tokens", { name: "one", policies });
  const client = await post<{ client_secret: string }>(account, "/oauth_clients", {
    client_name: "One",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["http://127.0.0.1:9999/callback"],
    scopes: ["account.read"],
    token_endpoint_auth_method: "client_secret_basic",
  });
  const namespace = "/artifacts/namespaces/default";
  const repository = await post<{ token: string }>(account, `${namespace}/repos`, { name: "one" });
  await request(account, "PUT", "/apps/one/secrets/OPENS", { value: APP_SECRET });
  const secrets = [token.value, client.client_secret, repository.token];
  for (const secret of secrets) expect(secret).to.be.a("string").with.length.above(20);
  return secrets;
}

/**
 * Waits until the steps of requests are stored, which happens with a short delay. Then returns the texts of all
 * stored messages.
 */
async function textsOf(url: string): Promise<string[]> {
  const bus = await Bus.connect({ url, name: "reader" });
  try {
    const steps = async () => (await bus.jetstream.streams.info(STREAMS.traces)).state.messages;
    await until("steps of requests are stored", async () => (await steps()) > 3);
    return await storedTexts(bus);
  } finally {
    await bus.close();
  }
}

const get = <R>(account: Account, path: string) => request<R>(account, "GET", path);
const post = <R>(account: Account, path: string, body: object, headers = {}) =>
  request<R>(account, "POST", path, body, headers);

async function request<R>(
  { url, token }: Account,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<R> {
  const response = await fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { result: R };
  expect(response.ok, JSON.stringify(answer)).to.equal(true);
  return answer.result;
}
