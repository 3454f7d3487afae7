/**
 * A little data of each kind that a user can see, with functions that create and check it. Each release creates this
 * data, and every later version opens it.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Credentials } from "./role-process.ts";

const Expected = z.object({
  accountId: z.string(),
  /** An API token that opens all, and one that was revoked. */
  token: z.string(),
  revoked: z.string(),
  commit: z.string(),
  clientId: z.string(),
  accountName: z.string(),
});
export type Expected = z.output<typeof Expected>;

const FILE = "expected.json";
const TEXT = "# What 🚂 wrote\n";

interface Platform {
  /** Where it listens. */
  url: string;
  account: string;
  token: string;
}

/** Fills a new platform. */
export async function makeData(url: string, credentials: Credentials): Promise<Expected> {
  const platform = { url, account: credentials.account_id, token: credentials.api_token };
  const repo = "/artifacts/namespaces/default/repos";
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
  return {
    accountId: platform.account,
    token: platform.token,
    revoked: revoked.value,
    commit,
    clientId: client.client_id,
    accountName: account.name,
  };
}

/** Returns descriptions of all data that a platform does not show as before. */
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
