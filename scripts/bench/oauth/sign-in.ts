/** How long REST reads take while 50 people a second sign in, beside those of the same instance without sign-ins. */
import { setTimeout as wait } from "node:timers/promises";
import { Person } from "../../../gateway/oauth/testing/oauth-world.ts";
import { type Benchmark, type Load, median, quantile } from "../benchmark.ts";
import { Instance } from "../instance.ts";
import { runLoad } from "../run-load.ts";

const SIGN_INS_PER_SECOND = 50;
const ROUNDS = 3;
const ROUND_MS = 10_000;
/** Each person signs in from a network and a browser of their own, once a second. */
const PEOPLE = SIGN_INS_PER_SECOND;
const WARM_UP_MS = 2_000;

/** A sign-in form as a browser sends it. */
interface Form {
  body: string;
  headers: Record<string, string>;
}

interface Round {
  reads: Load;
  signedIn: number;
  /** Time of each sign-in that succeeded. */
  signInMs: Float64Array;
}

export const signIn: Benchmark = {
  name: "sign-in",
  async run() {
    await using instance = await Instance.start({ TRUNKLINE_TRUST_PROXY: "loopback" });
    const forms: Form[] = [];
    for (let index = 0; index < PEOPLE; index++) forms.push(await formOf(instance, index));
    await readsOf(instance, WARM_UP_MS);
    const idle: Load[] = [];
    const busy: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      idle.push(await readsOf(instance, ROUND_MS));
      busy.push(await roundOf(instance, forms));
    }
    const p = (part: number, loads: Load[]) =>
      median(loads.map(({ latencies }) => quantile(latencies, part)));
    const reads = busy.map((round) => round.reads);
    const name = `REST read, one in flight, during ${SIGN_INS_PER_SECOND} sign-ins a second; without`;
    return [
      { name, unit: "ms p50", ours: p(0.5, reads), reference: p(0.5, idle) },
      {
        name,
        unit: "ms p99",
        ours: p(0.99, reads),
        reference: p(0.99, idle),
        target: { atMost: 2 },
      },
      {
        name: `sign-ins that succeed, ${SIGN_INS_PER_SECOND} a second`,
        unit: "/s",
        ours: median(busy.map(({ signedIn }) => (signedIn / ROUND_MS) * 1_000)),
      },
      {
        name: "sign-in",
        unit: "ms p50",
        ours: median(busy.map(({ signInMs }) => quantile(signInMs, 0.5))),
      },
    ];
  },
};

/** Signs a person up, and returns the form that signs them in. */
async function formOf(instance: Instance, index: number): Promise<Form> {
  const person = new Person(instance.url);
  person.from = `198.51.100.${index + 1}`;
  const user = { email: `person-${index}@example.com`, password: "a long cotton horse" };
  await person.open("/signup");
  await person.submit(user);
  const body = person.fill(user).toString();
  const cookie = [...person.cookies].map(([name, { value }]) => `${name.split(";")[0]}=${value}`);
  const headers = {
    "Content-Type": "application/x-www-form-urlencoded",
    "X-Forwarded-For": person.from,
    Cookie: cookie.join("; "),
  };
  return { body, headers };
}

/** Reads while people sign in at a fixed rate, whether or not earlier sign-ins have been answered. */
async function roundOf(instance: Instance, forms: readonly Form[]): Promise<Round> {
  const signInMs: number[] = [];
  const signIns: Promise<void>[] = [];
  const startedAt = performance.now();
  const reading = readsOf(instance, ROUND_MS);
  for (let index = 0; index < (ROUND_MS / 1_000) * SIGN_INS_PER_SECOND; index++) {
    const dueMs = startedAt + (index * 1_000) / SIGN_INS_PER_SECOND - performance.now();
    if (dueMs > 0) await wait(dueMs);
    const form = forms[index % forms.length];
    if (form) signIns.push(post(instance, form, signInMs));
  }
  const reads = await reading;
  await Promise.all(signIns);
  return { reads, signedIn: signInMs.length, signInMs: Float64Array.from(signInMs) };
}

async function post(instance: Instance, { body, headers }: Form, times: number[]): Promise<void> {
  const before = performance.now();
  const options = { method: "POST", redirect: "manual", body, headers } as const;
  const answer = await fetch(`${instance.url}/login`, options);
  await answer.text();
  if (answer.status === 303) times.push(performance.now() - before);
  // 429 and 503 are expected: the instance refuses a sign-in if too many password hashes wait already.
  else if (answer.status !== 429 && answer.status !== 503) {
    throw new Error(`Cannot sign in: ${answer.status}`);
  }
}

/** Reads the tokens of the account, one after the other. */
function readsOf(instance: Instance, ms: number): Promise<Load> {
  const { base_url, account_id, api_token } = instance.credentials();
  const headers = { Authorization: `Bearer ${api_token}` };
  return runLoad({ inFlight: 1, ms }, async () => {
    const answer = await fetch(`${base_url}/accounts/${account_id}/tokens`, { headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Cannot read tokens: ${answer.status} ${text}`);
  });
}
