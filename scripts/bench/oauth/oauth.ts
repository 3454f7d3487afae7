/**
 * Refreshes of many grants at once; and what an OAuth access token adds to a REST call, over a route that checks
 * nothing.
 */
import { randomBytes } from "node:crypto";
import { Person } from "../../../gateway/oauth/testing/oauth-world.ts";
import { type Benchmark, type Load, median, quantile } from "../benchmark.ts";
import { Instance } from "../instance.ts";
import { runLoad } from "../run-load.ts";

const IN_FLIGHT = 64;
/**
 * Enough that a grant is as small as one that is refreshed once an hour, and not one that is refreshed all the time.
 */
const GRANTS = 480;
/** One person's grants to one client are fewer than that. */
const GRANTS_PER_CLIENT = 40;
const ROUNDS = 5;
const ROUND_MS = 3_000;
const CALLS = 1_000;
const REDIRECT_URI = "http://127.0.0.1:1/callback";

/** A client's program: what it refreshes with, and what came of it. */
interface Chain {
  basic: string;
  refresh: string;
  access: string;
}

export const oauth: Benchmark = {
  name: "oauth",
  async run() {
    await using instance = await Instance.start();
    const chains = await openChains(instance);
    await refreshAll(instance, chains);
    const loads: Load[] = [];
    for (let round = 0; round < ROUNDS; round++) loads.push(await refreshAll(instance, chains));
    const [chain] = chains;
    if (!chain) throw new Error("Cannot measure: no grant was opened");
    const { api_token } = instance.credentials();
    const calls = await callsInTurn(instance, api_token, chain.access);
    const p50 = ({ latencies }: Load) => quantile(latencies, 0.5);
    const name = `refresh of a token, ${IN_FLIGHT} in flight`;
    return [
      {
        name,
        unit: "/s",
        ours: median(loads.map(({ operations, ms }) => (operations / ms) * 1_000)),
        target: { atLeast: 300 },
      },
      { name, unit: "ms p50", ours: median(loads.map(p50)) },
      { name, unit: "ms p99", ours: median(loads.map((load) => quantile(load.latencies, 0.99))) },
      {
        name: "REST call with an access token, with an API token",
        unit: "ms p50",
        ours: median(calls.access),
        reference: median(calls.api),
      },
      {
        name: "REST call with an access token, a route that checks nothing",
        unit: "ms p50",
        ours: median(calls.access),
        reference: median(calls.bare),
      },
      {
        name: "what the access token adds at most",
        unit: "ms p50",
        ours: median(calls.access) - median(calls.bare),
        target: { atMost: 1 },
      },
    ];
  },
};

/** Grants as people make them: a sign-in, a consent for each client, and codes. */
async function openChains(instance: Instance): Promise<Chain[]> {
  const { user } = instance.credentials();
  const person = new Person(instance.url);
  await person.open("/login");
  await person.signIn(user);
  const chains: Chain[] = [];
  while (chains.length < GRANTS) {
    const { client_id, client_secret } = await makeClient(instance);
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const query = new URLSearchParams({
      client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      state: randomBytes(8).toString("hex"),
    });
    for (let index = 0; index < GRANTS_PER_CLIENT && chains.length < GRANTS; index++) {
      await person.open(`/oauth2/auth?${query}`);
      if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
      const code = new URL(person.seen.url).searchParams.get("code") ?? "";
      const chain = { basic, refresh: "", access: "" };
      const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
      await takeTokens(instance, chain, fields);
      chains.push(chain);
    }
  }
  return chains;
}

async function makeClient(instance: Instance) {
  const answer = await instance.requester()("POST", "oauth_clients", {
    client_name: "Bench",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    redirect_uris: [REDIRECT_URI],
    scopes: ["account.read", "artifacts.read"],
    token_endpoint_auth_method: "client_secret_basic",
  });
  type Made = { result: { client_id: string; client_secret: string } };
  return ((await answer.json()) as Made).result;
}

/** In turn, so that no chain is refreshed twice at once. */
function refreshAll(instance: Instance, chains: Chain[]): Promise<Load> {
  return runLoad({ inFlight: IN_FLIGHT, ms: ROUND_MS }, async () => {
    const chain = chains.shift();
    if (!chain) throw new Error("Cannot refresh: every grant is being refreshed");
    await takeTokens(instance, chain, {
      grant_type: "refresh_token",
      refresh_token: chain.refresh,
    });
    chains.push(chain);
  });
}

async function takeTokens(instance: Instance, chain: Chain, fields: Record<string, string>) {
  const answer = await fetch(`${instance.url}/oauth2/token`, {
    method: "POST",
    headers: { Authorization: `Basic ${chain.basic}` },
    body: new URLSearchParams(fields),
  });
  const body = (await answer.json()) as { access_token: string; refresh_token: string };
  if (!answer.ok) throw new Error(`Cannot take tokens: ${answer.status} ${JSON.stringify(body)}`);
  chain.access = body.access_token;
  chain.refresh = body.refresh_token;
}

/**
 * One call of each kind in turn, so that all see the machine as it is: by either token to a route that asks no actor
 * for its answer, and to one that asks for no token. What lies between is the check, and all else that the REST API
 * does beside it.
 */
async function callsInTurn(instance: Instance, api: string, access: string) {
  const { base_url } = instance.credentials();
  const url = `${base_url}/oauth/scopes`;
  const calls = { bare: [] as number[], api: [] as number[], access: [] as number[] };
  for (let turn = 0; turn < CALLS; turn++) {
    calls.bare.push(await get(`${instance.url}/healthz`, undefined));
    calls.api.push(await get(url, api));
    calls.access.push(await get(url, access));
  }
  return calls;
}

async function get(url: string, token: string | undefined): Promise<number> {
  const headers: Record<string, string> = {};
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  const before = performance.now();
  const answer = await fetch(url, { headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`Cannot get: ${answer.status} ${text}`);
  return performance.now() - before;
}
