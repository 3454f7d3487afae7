/**
 * Creates a test event for a declared endpoint in the browser, and signs it as the real provider does. The person
 * enters the secret, because the platform never returns a stored one.
 */
import type { WireApp } from "../lib/wire.ts";

export type Endpoint = NonNullable<WireApp["config"]>["webhooks"][number];

interface TestEvent {
  entity: string;
  eventType: string;
  /** JSON. */
  body: string;
  secret: string;
}

interface SignedTest {
  /** Below the app's address. */
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** Returns the initial body of a test event. */
export function sampleBody({ provider }: Endpoint): string {
  const samples: Partial<Record<Endpoint["provider"], object>> = {
    github: {
      ref: "refs/heads/main",
      commits: [{ message: "Hello" }],
      sender: { login: "octocat" },
    },
    stripe: { object: "event", data: { object: {} } },
    slack: { type: "event_callback", event: { type: "message", text: "hello" } },
    linear: { action: "create", data: {} },
  };
  return JSON.stringify(samples[provider] ?? { hello: "world" }, null, 2);
}

/** Signs a test event. `url` is the app's public address; Twilio's signature covers it. */
export async function signTest(
  endpoint: Endpoint,
  event: TestEvent,
  url: string,
): Promise<SignedTest> {
  const id = crypto.randomUUID();
  const fields = JSON.parse(event.body) as Record<string, unknown>;
  const headers: Record<string, string> = {};
  const { entity, event_id: idAt, event_type: typeAt } = endpoint;
  const path =
    "path" in entity
      ? endpoint.path.replace(":entity", encodeURIComponent(event.entity))
      : endpoint.path;
  if ("header" in entity) headers[entity.header] = event.entity;
  if ("body" in entity) setAt(fields, entity.body, event.entity);
  for (const [place, value] of [
    [idAt, id],
    [typeAt, event.eventType],
  ] as const) {
    if (!place || value === "") continue;
    if ("header" in place) headers[place.header] = value;
    else setAt(fields, place.body, value);
  }
  const about = { id, type: event.eventType, secret: event.secret, fields, url: url + path };
  const signed = await SIGNERS[endpoint.provider](about, endpoint);
  return { path, headers: { ...headers, ...signed.headers }, body: signed.body };
}

interface ToSign {
  id: string;
  type: string;
  secret: string;
  fields: Record<string, unknown>;
  url: string;
}

type Signed = Pick<SignedTest, "headers" | "body">;
type Signer = (event: ToSign, endpoint: Endpoint) => Promise<Signed>;

const JSON_TYPE = { "Content-Type": "application/json" };
const seconds = () => String(Math.floor(Date.now() / 1_000));

const SIGNERS: Record<Endpoint["provider"], Signer> = {
  async github({ id, type, secret, fields }) {
    const body = JSON.stringify(fields);
    const signature = `sha256=${hex(await mac("SHA-256", secret, body))}`;
    const named = { "X-GitHub-Delivery": id, "X-GitHub-Event": type || "push" };
    return { body, headers: { ...JSON_TYPE, ...named, "X-Hub-Signature-256": signature } };
  },
  async stripe({ id, type, secret, fields }) {
    const body = JSON.stringify({ id: `evt_${id}`, type: type || "test", ...fields });
    const at = seconds();
    const signature = `t=${at},v1=${hex(await mac("SHA-256", secret, `${at}.${body}`))}`;
    return { body, headers: { ...JSON_TYPE, "Stripe-Signature": signature } };
  },
  async slack({ id, secret, fields }) {
    const body = JSON.stringify({ event_id: id, ...fields });
    const at = seconds();
    const signature = `v0=${hex(await mac("SHA-256", secret, `v0:${at}:${body}`))}`;
    const named = { "X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature };
    return { body, headers: { ...JSON_TYPE, ...named } };
  },
  async shopify({ id, type, secret, fields }) {
    const body = JSON.stringify(fields);
    const signature = base64(await mac("SHA-256", secret, body));
    const named = { "X-Shopify-Webhook-Id": id, "X-Shopify-Topic": type || "orders/create" };
    return { body, headers: { ...JSON_TYPE, ...named, "X-Shopify-Hmac-Sha256": signature } };
  },
  async twilio({ id, secret, fields, url }) {
    const form = Object.entries(fields).map(([name, value]) => [name, String(value)] as const);
    const sorted = form.toSorted(([one], [other]) => (one < other ? -1 : 1));
    const text = url + sorted.map(([name, value]) => name + value).join("");
    const signature = base64(await mac("SHA-1", secret, text));
    const named = { "I-Twilio-Idempotency-Token": id, "X-Twilio-Signature": signature };
    const body = new URLSearchParams(form.map(([name, value]) => [name, value])).toString();
    const type = { "Content-Type": "application/x-www-form-urlencoded" };
    return { body, headers: { ...type, ...named } };
  },
  async linear({ id, type, secret, fields }) {
    const body = JSON.stringify({ type: type || "Issue", webhookTimestamp: Date.now(), ...fields });
    const signature = hex(await mac("SHA-256", secret, body));
    const named = { "Linear-Delivery": id, "Linear-Event": type || "Issue" };
    return { body, headers: { ...JSON_TYPE, ...named, "Linear-Signature": signature } };
  },
  async "standard-webhooks"({ id, type, secret, fields }) {
    const body = JSON.stringify({ type: type || "test", ...fields });
    const at = seconds();
    const signature = base64(await mac("SHA-256", standardKey(secret), `${id}.${at}.${body}`));
    const named = { "webhook-id": id, "webhook-timestamp": at };
    return { body, headers: { ...JSON_TYPE, ...named, "webhook-signature": `v1,${signature}` } };
  },
  async hmac({ secret, fields }, { hmac }) {
    const body = JSON.stringify(fields);
    if (!hmac) throw new Error("Cannot sign: the endpoint does not say how");
    const at = seconds();
    const text = hmac.timestamp_header === undefined ? body : `${at}.${body}`;
    const bytes = await mac(`SHA-${hmac.algorithm.slice(3)}`, secret, text);
    const signature = hmac.prefix + (hmac.encoding === "hex" ? hex(bytes) : base64(bytes));
    const timed = hmac.timestamp_header === undefined ? {} : { [hmac.timestamp_header]: at };
    return { body, headers: { ...JSON_TYPE, ...timed, [hmac.header]: signature } };
  },
};

async function mac(
  hash: string,
  secret: string | Uint8Array<ArrayBuffer>,
  text: string,
): Promise<Uint8Array> {
  // Browsers provide cryptography only on pages with TLS or from this machine.
  if (!crypto.subtle)
    throw new Error("Cannot sign here: open the console by https, or on 127.0.0.1");
  const bytes = typeof secret === "string" ? new TextEncoder().encode(secret) : secret;
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}

/** Decodes a secret of the form `whsec_<base64>`. Other text is used as it is. */
function standardKey(secret: string): string | Uint8Array<ArrayBuffer> {
  if (!secret.startsWith("whsec_")) return secret;
  return Uint8Array.from(atob(secret.slice("whsec_".length)), (one) => one.charCodeAt(0));
}

export const hex = (bytes: Uint8Array) =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));

/** Sets the value at a JSON pointer (RFC 6901), and creates missing objects on the way. */
function setAt(target: Record<string, unknown>, pointer: string, value: string): void {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = steps.pop() ?? "";
  let at = target;
  for (const step of steps) {
    const next = Object.hasOwn(at, step) ? at[step] : undefined;
    const inner = typeof next === "object" && next !== null ? next : {};
    Object.defineProperty(at, step, { value: inner, enumerable: true, configurable: true });
    at = inner as Record<string, unknown>;
  }
  Object.defineProperty(at, last, { value, enumerable: true, configurable: true });
}
