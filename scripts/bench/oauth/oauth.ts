/**
 * Benchmarks introspections and refreshes of many grants in parallel, compared with Ory Hydra if the variable HYDRA
 * names it. Also measures the time that an OAuth access token adds to a REST call, compared with a route that checks
 * nothing.
 */
import { randomBytes } from "node:crypto";
import { Person } from "../../../gateway/oauth/testing/oauth-world.ts";
import {
  type Benchmark,
  type Figure,
  type Load,
  median,
  quantile,
  type Target,
} from "../benchmark.ts";
import { Instance } from "../instance.ts";
import { runLoad } from "../run-load.ts";
import { Hydra } from "./hydra.ts";
import { LightConnection } from "./light-connection.ts";

const IN_FLIGHT = 32;
/**
 * Number of grants. With this many, each grant is refreshed only a few times. So it stays as small as in normal use,
 * where a refresh happens once an hour.
 */
const GRANTS = 240;
/**
 * Number of Hydra's grants. A low number is enough: Hydra stores each token in a separate row, so its grants do not
 * grow.
 */
const HYDRA_GRANTS = 64;
/** Number of grants of one person to one client. It is below the platform's limit. */
const GRANTS_PER_CLIENT = 40;
const ROUNDS = 5;
const ROUND_MS = 2_000;
const CALLS = 1_000;
const REDIRECT_URI = "http://127.0.0.1:1/callback";

/** The client of one grant: its credentials, its refresh token, and its latest access token. */
interface Chain {
  basic: string;
  refresh: string;
  access: string;
}

/** An authorization server, its grants, and its endpoints. */
interface Server {
  chains: Chain[];
  url: string;
  introspectUrl: string;
  introspectPath: string;
  refreshesInFlight: number;
}

export const oauth: Benchmark = {
  name: "oauth",
  async run() {
    await using instance = await Instance.start();
    const { url } = instance;
    const introspectPath = "/oauth2/introspect";
    const ours: Server = {
      chains: [],
      url,
      introspectUrl: url,
      introspectPath,
      refreshesInFlight: IN_FLIGHT,
    };
    await openChains(instance, ours);
    const program = process.env.HYDRA;
    await using hydra = program ? await Hydra.start(program) : undefined;
    const theirs: Server | undefined = hydra && {
      chains: [],
      url: hydra.url,
      introspectUrl: hydra.adminUrl,
      introspectPath: "/admin/oauth2/introspect",
      // One refresh at a time: with more, SQLite reports a lock for some of them, and Hydra answers 500.
      refreshesInFlight: 1,
    };
    if (hydra && theirs) await openHydraChains(hydra, theirs);
    const introspected = await inTurn(ours, theirs, introspectAll);
    const refreshed = await inTurn(ours, theirs, refreshAll);
    const [chain] = ours.chains;
    if (!chain) throw new Error("Cannot measure: no grant was opened");
    const { api_token } = instance.credentials();
    const calls = await callsInTurn(instance, api_token, chain.access);
    return [
      ...figuresOf(`introspection of a token, ${IN_FLIGHT} in flight; Ory Hydra`, introspected, {
        atLeast: 0.7,
      }),
      ...figuresOf(
        `refresh of a token, ${IN_FLIGHT} in flight; Ory Hydra, one in flight`,
        refreshed,
        { atLeast: 3 },
      ),
      ...callFigures(calls),
    ];
  },
};

interface Loads {
  ours: Load[];
  theirs: Load[];
}

function figuresOf(name: string, { ours, theirs }: Loads, target: Target): Figure[] {
  const figure = (unit: string, of: (load: Load) => number): Figure => ({
    name,
    unit,
    ours: median(ours.map(of)),
    ...(theirs.length > 0 && { reference: median(theirs.map(of)) }),
  });
  const rate = figure("/s", ({ operations, ms }) => (operations / ms) * 1_000);
  return [
    theirs.length > 0 ? { ...rate, target } : rate,
    figure("ms p50", ({ latencies }) => quantile(latencies, 0.5)),
    figure("ms p99", ({ latencies }) => quantile(latencies, 0.99)),
  ];
}

function callFigures(calls: Awaited<ReturnType<typeof callsInTurn>>): Figure[] {
  const [access, api, bare] = [calls.access, calls.api, calls.bare].map(median);
  return [
    {
      name: "REST call with an API token, one in flight",
      unit: "ms p50",
      ours: api ?? Number.NaN,
      target: { atMost: 0.8 },
    },
    {
      name: "REST call with an access token, with an API token",
      unit: "ms p50",
      ours: access ?? Number.NaN,
      ...(api !== undefined && { reference: api }),
    },
    {
      name: "REST call with an access token, a route that checks nothing",
      unit: "ms p50",
      ours: access ?? Number.NaN,
      ...(bare !== undefined && { reference: bare }),
    },
  ];
}

/** Measures one server after the other in several rounds. Omits the first round, which only warms up. */
async function inTurn(
  ours: Server,
  theirs: Server | undefined,
  measure: (server: Server) => Promise<Load>,
): Promise<Loads> {
  const loads: Loads = { ours: [], theirs: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    const [own, their] = [await measure(ours), theirs && (await measure(theirs))];
    if (round === 0) continue;
    loads.ours.push(own);
    if (their) loads.theirs.push(their);
  }
  return loads;
}

/** Creates grants as people do: a sign-in, a consent for each client, and authorization codes. */
async function openChains(instance: Instance, server: Server): Promise<void> {
  const { user } = instance.credentials();
  const person = new Person(instance.url);
  await person.open("/login");
  await person.signIn(user);
  const { chains, url } = server;
  while (chains.length < GRANTS) {
    const { client_id, client_secret } = await makeClient(instance);
    const basic = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`;
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
      await redeem(url, chain, fields);
      chains.push(chain);
    }
  }
}

async function openHydraChains(hydra: Hydra, { chains, url }: Server): Promise<void> {
  const { clientId, basic } = await hydra.makeClient();
  while (chains.length < HYDRA_GRANTS) {
    const chain = { basic, refresh: "", access: "" };
    await redeem(url, chain, await hydra.openGrant(clientId));
    chains.push(chain);
  }
}

async function redeem(url: string, chain: Chain, fields: Record<string, string>): Promise<void> {
  const connection = new LightConnection(url);
  await takeTokens(connection, chain, fields);
  connection.close();
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

/** Takes each grant out of the queue while it is refreshed, so that no grant is refreshed twice at the same time. */
function refreshAll({ chains, url, refreshesInFlight }: Server): Promise<Load> {
  return runForms(url, refreshesInFlight, async (connection) => {
    const chain = chains.shift();
    if (!chain) throw new Error("Cannot refresh: every grant is being refreshed");
    await takeTokens(connection, chain, {
      grant_type: "refresh_token",
      refresh_token: chain.refresh,
    });
    chains.push(chain);
  });
}

function introspectAll({ chains, introspectUrl, introspectPath }: Server): Promise<Load> {
  return runForms(introspectUrl, IN_FLIGHT, async (connection, index) => {
    const chain = chains[index % chains.length];
    if (!chain) throw new Error("Cannot introspect: no grant was opened");
    const { text } = await connection.post(introspectPath, chain.basic, { token: chain.access });
    if (!text.includes('"active":true')) throw new Error(`Cannot introspect: ${text}`);
  });
}

/** Opens new connections for each run, because servers close connections that were idle for some seconds. */
async function runForms(
  url: string,
  inFlight: number,
  operate: (connection: LightConnection, index: number) => Promise<void>,
): Promise<Load> {
  const connections = Array.from({ length: inFlight }, () => new LightConnection(url));
  const free = [...connections];
  const load = await runLoad({ inFlight, ms: ROUND_MS }, async (index) => {
    const connection = free.pop();
    if (!connection) throw new Error("Cannot post: every connection is in use");
    await operate(connection, index);
    free.push(connection);
  });
  for (const connection of connections) connection.close();
  return load;
}

async function takeTokens(
  connection: LightConnection,
  chain: Chain,
  fields: Record<string, string>,
) {
  const { status, text } = await connection.post("/oauth2/token", chain.basic, fields);
  if (status !== 200) throw new Error(`Cannot take tokens: ${status} ${text}`);
  const body = JSON.parse(text) as { access_token: string; refresh_token: string };
  chain.access = body.access_token;
  chain.refresh = body.refresh_token;
}

/**
 * Measures calls to three targets alternately, so that all see the same load of the machine. With an API token and
 * with an access token, it calls a route that needs no actor for its response. Without a token, it calls /healthz.
 * The difference is the check of the token and the other work of the REST API.
 */
async function callsInTurn(instance: Instance, api: string, access: string) {
  const { base_url } = instance.credentials();
  const path = `${new URL(base_url).pathname}/oauth/scopes`;
  const calls = { bare: [] as number[], api: [] as number[], access: [] as number[] };
  const connection = new LightConnection(instance.url);
  for (let turn = 0; turn < CALLS; turn++) {
    calls.bare.push(await timeGet(connection, "/healthz", undefined));
    calls.api.push(await timeGet(connection, path, api));
    calls.access.push(await timeGet(connection, path, access));
  }
  connection.close();
  return calls;
}

async function timeGet(connection: LightConnection, path: string, token: string | undefined) {
  const before = performance.now();
  const answer = await connection.get(path, token && `Bearer ${token}`);
  if (answer.status !== 200) throw new Error(`Cannot get: ${answer.status} ${answer.text}`);
  return performance.now() - before;
}
