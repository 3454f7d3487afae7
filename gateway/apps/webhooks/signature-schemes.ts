/** The signature scheme of each provider, in one table. */

import { createHash } from "node:crypto";
import type { HmacScheme, WEBHOOK_PROVIDERS } from "../../../schemas/apps/app-config.ts";
import { formOf, type SignedEvent, valueAt } from "./signed-event.ts";

/** Signatures of one event that are looked at: a sender that goes over to another secret has two or three. */
const SIGNATURES_READ_MAX = 16;

export interface SignatureScheme {
  /** Headers that may have the signature; the first that is present counts. */
  headers: readonly string[];
  algorithm: "sha1" | "sha256" | "sha512";
  encoding: "hex" | "base64";
  /** The signatures in the header's value: several while a secret is rotated. Absent: the value is one. */
  given?(value: string): string[];
  /** Returns the signed text in all forms that it may have; undefined if the event does not fit the scheme. */
  signed(event: SignedEvent, header: string): (string | Buffer)[][] | undefined;
  /** Keys of a secret. Absent: its own bytes. */
  keys?(secret: string): (string | Buffer)[];
  /** When it was signed, in epoch seconds, by what is signed itself. */
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
    // The signature of Linear does not cover its header Linear-Timestamp.
    signedAt: ({ fields }) => {
      const at = valueAt(fields, "/webhookTimestamp");
      return typeof at === "number" ? at / 1_000 : undefined;
    },
    toleranceS: 60,
  },
  "standard-webhooks": {
    // Svix's own names, which senders had before there was a standard.
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

/** Id and time are signed with the signature of the same names: those of the other names anybody on the way can add. */
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

/** base64 after `whsec_`. Without it libraries read base64 all the same; plain text is what people set. */
function standardKeys(secret: string): (string | Buffer)[] {
  const PREFIX = "whsec_";
  if (secret.startsWith(PREFIX)) return [Buffer.from(secret.slice(PREFIX.length), "base64")];
  return [Buffer.from(secret, "base64"), secret];
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

/** Digits alone: nothing that reads as a number and is signed as another text. */
function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** A form's fields, sorted, behind the address; of JSON the address alone, which has the body's hash in it. */
function twilioTexts({ url, body, headers }: SignedEvent): string[][] | undefined {
  const hash = URL.parse(url)?.searchParams.get("bodySHA256");
  if (hash !== null && hash !== undefined) {
    const found = createHash("sha256").update(body).digest("hex");
    return found === hash.toLowerCase() ? withAndWithoutPort(url).map((one) => [one]) : undefined;
  }
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "");
  const form = isForm ? formOf(body) : new URLSearchParams();
  const fields = [...new Set(form.keys())]
    .sort()
    .flatMap((name) => [...new Set(form.getAll(name))].sort().map((value) => name + value));
  return withAndWithoutPort(url).map((one) => [one, ...fields]);
}

/** Twilio signs some addresses with the scheme's own port, some without any. */
function withAndWithoutPort(url: string): string[] {
  const [, scheme = "", host = "", port, rest = ""] =
    /^(https?:\/\/)((?:\[[^\]]*\]|[^/?#:])+)(:\d+)?(.*)$/s.exec(url) ?? [];
  if (host === "") return [url];
  const own = scheme === "https://" ? ":443" : ":80";
  return [...new Set([url, scheme + host + rest, scheme + host + (port ?? own) + rest])];
}
