/** The signature scheme of each provider, in one table. */

import { createHash } from "node:crypto";
import type { HmacScheme, WEBHOOK_PROVIDERS } from "../../../schemas/apps/app-config.ts";
import { formOf, type SignedEvent, valueAt } from "./signed-event.ts";

/**
 * Limit of the signatures of one event that are checked. During a change of the secret, a sender sends two or three.
 */
const SIGNATURES_READ_MAX = 16;

/**
 * The shortest key for which text without the prefix `whsec_` is also read as base64. The standard asks for 24 to 64
 * bytes.
 */
const BASE64_KEY_BYTES_MIN = 16;

export interface SignatureScheme {
  /** Headers that may have the signature; the first that is present counts. */
  headers: readonly string[];
  algorithm: "sha1" | "sha256" | "sha512";
  encoding: "hex" | "base64";
  /**
   * Returns the signatures in the header's value. There are several while a secret is rotated. If absent, the whole
   * value is one signature.
   */
  given?(value: string): string[];
  /** Returns the signed text in all forms that it may have; undefined if the event does not fit the scheme. */
  signed(event: SignedEvent, header: string): (string | Buffer)[][] | undefined;
  /** Returns the keys of a secret. If absent, the key is the secret's own bytes. */
  keys?(secret: string): (string | Buffer)[];
  /** Returns the time of signing in epoch seconds. It is read from signed fields. */
  signedAt?(event: SignedEvent, header: string): number | undefined;
  toleranceS?: number;
}

type Provider = Exclude<(typeof WEBHOOK_PROVIDERS)[number], "hmac">;

export const SIGNATURE_SCHEMES: Record<Provider, SignatureScheme> = {
  github: {
    headers: ["x-hub-signature-256"],
    algorithm: "sha256",
    encoding: "hex",
    given: (value) => withoutPrefix(value, "sha256="),
    signed: ({ body }) => [[body]],
  },
  stripe: {
    headers: ["stripe-signature"],
    algorithm: "sha256",
    encoding: "hex",
    given: (value) => stripeParts(value, "v1"),
    signed: ({ body }, header) => {
      const [time] = stripeParts(header, "t");
      return time === undefined ? undefined : [[`${time}.`, body]];
    },
    signedAt: (_event, header) => secondsOf(stripeParts(header, "t")[0]),
    toleranceS: 300,
  },
  slack: {
    headers: ["x-slack-signature"],
    algorithm: "sha256",
    encoding: "hex",
    given: (value) => withoutPrefix(value, "v0="),
    signed: ({ body, headers }) => [[`v0:${headers.get("x-slack-request-timestamp")}:`, body]],
    signedAt: ({ headers }) => secondsOf(headers.get("x-slack-request-timestamp")),
    toleranceS: 300,
  },
  shopify: {
    headers: ["x-shopify-hmac-sha256", "shopify-hmac-sha256"],
    algorithm: "sha256",
    encoding: "base64",
    signed: ({ body }) => [[body]],
  },
  twilio: {
    headers: ["x-twilio-signature"],
    algorithm: "sha1",
    encoding: "base64",
    signed: twilioTexts,
  },
  linear: {
    headers: ["linear-signature"],
    algorithm: "sha256",
    encoding: "hex",
    signed: ({ body }) => [[body]],
    // Linear's signature does not cover the header Linear-Timestamp, so the time is read from the body.
    signedAt: ({ fields }) => {
      const at = valueAt(fields, "/webhookTimestamp");
      return typeof at === "number" ? at / 1_000 : undefined;
    },
    toleranceS: 60,
  },
  "standard-webhooks": {
    // `svix-signature` is the name that Svix and its users had before the standard existed.
    headers: ["webhook-signature", "svix-signature"],
    algorithm: "sha256",
    encoding: "base64",
    given: (value) =>
      value
        .split(" ", SIGNATURES_READ_MAX)
        .filter((one) => one.startsWith("v1,"))
        .map((one) => one.slice(3)),
    signed: ({ body, headers }) => {
      const prefix = standardPrefix(headers);
      const [id, time] = [headers.get(`${prefix}-id`), headers.get(`${prefix}-timestamp`)];
      return id === undefined || time === undefined ? undefined : [[`${id}.${time}.`, body]];
    },
    keys: standardKeys,
    signedAt: ({ headers }) => secondsOf(headers.get(`${standardPrefix(headers)}-timestamp`)),
    toleranceS: 300,
  },
};

/**
 * Returns the prefix of the header names. The signature covers only the id and time headers with its own prefix.
 * Anybody on the way could add headers with the other prefix.
 */
export const standardPrefix = (headers: SignedEvent["headers"]) =>
  headers.get("webhook-signature") ? "webhook" : "svix";

/** The scheme that an app's configuration describes. */
export function hmacScheme(declared: HmacScheme): SignatureScheme {
  const { header, algorithm, encoding, prefix, timestamp_header, tolerance_seconds } = declared;
  const timeHeader = timestamp_header?.toLowerCase();
  return {
    headers: [header.toLowerCase()],
    ...{ algorithm, encoding },
    given: (value) => withoutPrefix(value, prefix),
    signed: ({ body, headers }) =>
      timeHeader === undefined ? [[body]] : [[`${headers.get(timeHeader)}.`, body]],
    ...(timeHeader !== undefined && {
      signedAt: ({ headers }) => secondsOf(headers.get(timeHeader)),
      toleranceS: tolerance_seconds,
    }),
  };
}

/**
 * Returns the keys of a secret. After `whsec_` it is base64. Without this prefix, libraries also read it as base64,
 * but people often set plain text, so both are tried. Text is read as base64 only if that gives a key that nobody can
 * guess.
 */
function standardKeys(secret: string): (string | Buffer)[] {
  const PREFIX = "whsec_";
  if (secret.startsWith(PREFIX)) return base64Keys(secret.slice(PREFIX.length));
  return [...base64Keys(secret).filter(({ length }) => length >= BASE64_KEY_BYTES_MIN), secret];
}

/**
 * Returns the key that a base64 text stands for, with or without padding. Other text has none: Buffer stops at the
 * first "=" and skips invalid characters, so a password such as "pw=8fj39" would become a key of one byte.
 */
function base64Keys(text: string): Buffer[] {
  const digits = text.trim().replace(/={1,2}$/, "");
  const isBase64 = /^(?:[A-Za-z0-9+/]*|[\w-]*)$/.test(digits) && digits.length % 4 !== 1;
  return isBase64 ? [Buffer.from(digits, "base64")] : [];
}

const withoutPrefix = (value: string, prefix: string) =>
  value.startsWith(prefix) ? [value.slice(prefix.length)] : [];

function stripeParts(header: string, name: string): string[] {
  return header
    .split(",", SIGNATURES_READ_MAX)
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
}

/**
 * Parses epoch seconds. Accepts only digits, because other texts could give the same number but are signed as
 * different texts.
 */
function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the texts that Twilio signs. For a form, this is the URL followed by the sorted fields. For JSON, it is
 * only the URL, which contains a hash of the body. No text covers another body: the URL could be that of a form with
 * its fields, whose signature anybody on the way may know.
 */
function twilioTexts({ url, body, headers }: SignedEvent): string[][] | undefined {
  const hash = URL.parse(url)?.searchParams.get("bodySHA256");
  if (hash !== null && hash !== undefined) {
    const found = createHash("sha256").update(body).digest("hex");
    return found === hash.toLowerCase() ? withAndWithoutPort(url).map((one) => [one]) : undefined;
  }
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "");
  if (!isForm && body.length > 0) return undefined;
  const fields = isForm ? sortedFields(formOf(body)) : [];
  return withAndWithoutPort(url).map((one) => [one, ...fields]);
}

/** Returns each name followed by one of its values, in order and without repetitions. */
function sortedFields(form: URLSearchParams): string[] {
  // The form is read one time: `form.getAll(name)` for each name would read the whole form as often as it has names.
  const valuesByName = new Map<string, Set<string>>();
  for (const [name, value] of form) {
    const values = valuesByName.get(name) ?? new Set();
    valuesByName.set(name, values.add(value));
  }
  return [...valuesByName.keys()]
    .sort()
    .flatMap((name) => [...(valuesByName.get(name) ?? [])].sort().map((value) => name + value));
}

/**
 * Returns the URL with and without the default port of its scheme, because Twilio signs some URLs with it and some
 * without.
 */
function withAndWithoutPort(url: string): string[] {
  const [, scheme = "", host = "", port, rest = ""] =
    /^(https?:\/\/)((?:\[[^\]]*\]|[^/?#:])+)(:\d+)?(.*)$/s.exec(url) ?? [];
  if (host === "") return [url];
  const own = scheme === "https://" ? ":443" : ":80";
  return [...new Set([url, scheme + host + rest, scheme + host + (port ?? own) + rest])];
}
