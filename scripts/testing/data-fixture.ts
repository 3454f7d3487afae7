/**
 * Creates and checks a small amount of each kind of user data. Each release creates this data, and every later
 * version must be able to open it.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CRAWL_KEPT_MS } from "../../schemas/crawl/limits.ts";
import { CrawlSite } from "./crawl-site.ts";
import type { Credentials } from "./role-process.ts";
import { until } from "./until.ts";

const Expected = z.object({
  accountId: z.string(),
  /** An API token with all permissions. `revoked` is a revoked API token. */
  token: z.string(),
  revoked: z.string(),
  commit: z.string(),
  clientId: z.string(),
  accountName: z.string(),
  /** The oldest fixtures have no crawl and no app. */
  crawl: z
    .object({ id: z.string(), endedAt: z.iso.datetime(), pages: z.array(z.string()) })
    .optional(),
  /** An agent of the app `diary`, and the number of lines that it stores. */
  agent: z.object({ name: z.string(), lines: z.int() }).optional(),
});
export type Expected = z.output<typeof Expected>;

const FILE = "expected.json";
const TEXT = "# What 🚂 wrote\n";
const PAGES = 3;
const END_MS_MAX = 120_000;
const DAY_MS = 86_400_000;
const CRAWLS = "/browser-rendering/crawl";
const REPOS = "/artifacts/namespaces/default/repos";

/**
 * An app whose agent stores a line in its database for each POST. Its response has the number of lines in the
 * database and the number in the agent's state.
 */
const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Diary extends Agent {
  initialState = { lines: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS lines (text TEXT)\`; }
  async onRequest(request) {
    if (request.method === "POST") {
      this.sql\`INSERT INTO lines VALUES (\${await request.text()})\`;
      this.setState({ lines: this.state.lines + 1 });
    }
    const [{ rows }] = this.sql\`SELECT count(*) AS rows FROM lines\`;
    return Response.json({ rows, state: this.state.lines });
  }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;

interface Platform {
  /** The URL at which the platform listens. */
  url: string;
  account: string;
  token: string;
}

/** Creates the data of a fixture on a new platform. Returns what a later version must find. */
export async function makeData(url: string, credentials: Credentials): Promise<Expected> {
  const platform = { url, account: credentials.account_id, token: credentials.api_token };
  const repo = REPOS;
  const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
  const revoked = await post<{ id: string; value: string }>(platform, "/tokens", {
    name: "revoked",
    policies,
  });
  await request(platform, "DELETE", `/tokens/${revoked.id}`);
  await post(platform, repo, { name: "kept" });
  await post(platform, repo, { name: "second" });
  const { hash: commit } = await post<{ hash: string }>(platform, `${repo}/kept/commits`, {
    message: "First",
    changes: [{ path: "docs/page.md", content: TEXT }],
  });
  const client = await post<{ client_id: string }>(platform, "/oauth_clients", {
    client_name: "Kept",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["http://127.0.0.1:9999/callback"],
    scopes: ["account.read"],
    token_endpoint_auth_method: "none",
  });
  const account = await get<{ name: string }>(platform, "");
  const crawl = await makeCrawl(platform);
  const agent = await makeAgent(platform);
  return {
    crawl,
    agent,
    accountId: platform.account,
    token: platform.token,
    revoked: revoked.value,
    commit,
    clientId: client.client_id,
    accountName: account.name,
  };
}

/** Crawls a site on this machine. The platform needs the role `browser` and the setting TRUNKLINE_EGRESS_ALLOW. */
async function makeCrawl(platform: Platform) {
  await using site = await CrawlSite.start([
    { address: "127.0.24.1", pages: PAGES, sitemap: true, crawlDelay: 0 },
  ]);
  const start = { url: `${site.origins[0]}/`, render: false, limit: PAGES };
  const id = await post<string>(platform, CRAWLS, start);
  const completed = async () => {
    const { status } = await get<{ status: string }>(platform, `${CRAWLS}/${id}?limit=1`);
    return status === "completed";
  };
  await until("the crawl has ended", completed, END_MS_MAX);
  const pages = await crawledPages(platform, id);
  return { id, endedAt: new Date().toISOString(), pages };
}

async function makeAgent(platform: Platform) {
  const agents = [{ binding: "Diary", class_name: "Diary" }];
  const config = { name: "diary", compatibility_date: "2026-11-20", agents };
  await request(platform, "PUT", "/apps/diary", { config, bundle: BUNDLE });
  const agent = { name: "kept", lines: 2 };
  for (let line = 1; line <= agent.lines; line++) await askAgent(platform, agent.name, "POST");
  return agent;
}

/** Checks the crawl and the agent of a fixture that has them. */
async function checkCrawlAndAgent(platform: Platform, expected: Expected, check: Check) {
  const { crawl, agent } = expected;
  // The platform deletes the results of a crawl after some time, and a fixture may be older than that. Then the crawl
  // is not checked.
  if (crawl && Date.now() < Date.parse(crawl.endedAt) + CRAWL_KEPT_MS - DAY_MS) {
    const wanted = crawl.pages.join();
    await check("pages of a crawl", wanted, async () =>
      (await crawledPages(platform, crawl.id)).join(),
    );
  }
  if (agent) {
    const before = JSON.stringify({ rows: agent.lines, state: agent.lines });
    await check("an agent", before, () => askAgent(platform, agent.name, "GET"));
    const after = JSON.stringify({ rows: agent.lines + 1, state: agent.lines + 1 });
    await check("a line more of an agent", after, () => askAgent(platform, agent.name, "POST"));
  }
}

type Check = (what: string, wanted: unknown, find: () => Promise<unknown>) => Promise<void>;

async function crawledPages(platform: Platform, id: string): Promise<string[]> {
  const { records } = await get<{ records: { url: string; html: string }[] }>(
    platform,
    `${CRAWLS}/${id}`,
  );
  return records.map(({ url, html }) => `${new URL(url).pathname} ${html.length}`).sort();
}

async function askAgent({ url, account }: Platform, name: string, method: string): Promise<string> {
  const address = `${url}/apps/${account}/diary/agents/diary/${name}`;
  const answer = await fetch(address, { method, ...(method === "POST" && { body: TEXT }) });
  return await answer.text();
}

/** Returns descriptions of all data that the platform has lost or changed. */
export async function findLost(url: string, expected: Expected): Promise<string[]> {
  const platform = { url, account: expected.accountId, token: expected.token };
  const lost: string[] = [];
  const check = async (what: string, wanted: unknown, find: () => Promise<unknown>) => {
    const found = await find().catch((error: unknown) => String(error));
    if (found !== wanted) lost.push(`${what}: expected ${wanted}, found ${found}`);
  };
  const repo = "/artifacts/namespaces/default/repos/kept";
  await check("account", expected.accountName, async () => {
    return (await get<{ name: string }>(platform, "")).name;
  });
  await check("revoked token", 401, async () => {
    const { status } = await ask({ ...platform, token: expected.revoked }, "GET", "");
    return status;
  });
  await check("repositories", "kept,second", async () => {
    const repos = await get<{ name: string }[]>(platform, "/artifacts/namespaces/default/repos");
    return repos
      .map(({ name }) => name)
      .sort()
      .join();
  });
  await check("commit", TEXT, async () => {
    const answer = await ask(platform, "GET", `${repo}/raw/${expected.commit}/docs/page.md`);
    return await answer.text();
  });
  await check("client", "Kept", async () => {
    const path = `/oauth_clients/${expected.clientId}`;
    return (await get<{ client_name: string }>(platform, path)).client_name;
  });
  await checkCrawlAndAgent(platform, expected, check);
  await check("a new commit", true, async () => {
    const changes = [{ path: "docs/new.md", content: "new" }];
    const made = await post<{ hash: string }>(platform, `${repo}/commits`, {
      ...{ message: "Next", changes },
    });
    return made.hash.length > 0;
  });
  return lost;
}

export async function readExpected(folder: string): Promise<Expected> {
  return Expected.parse(JSON.parse(await readFile(join(folder, FILE), "utf8")));
}

export async function writeExpected(folder: string, expected: Expected): Promise<void> {
  await writeFile(join(folder, FILE), `${JSON.stringify(expected, undefined, 2)}\n`);
}

const get = <T>(platform: Platform, path: string) => request<T>(platform, "GET", path);
const post = <T>(platform: Platform, path: string, body: unknown) =>
  request<T>(platform, "POST", path, body);

async function request<T>(
  platform: Platform,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const answer = await ask(platform, method, path, body);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (JSON.parse(text) as { result: T }).result;
}

const ask = ({ url, account, token }: Platform, method: string, path: string, body?: unknown) =>
  fetch(`${url}/v4/accounts/${account}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
