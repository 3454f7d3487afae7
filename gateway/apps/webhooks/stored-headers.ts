/**
 * The headers of an event that its agent receives: the sender's headers, and the platform's headers, which the sender
 * cannot set.
 */
import type { HeaderList } from "../../../schemas/apps/app-exchange.ts";

/** Headers of the connection and of proxies. The sender's credentials are removed too. */
const DROPPED = new Set([
  "accept-encoding",
  "authorization",
  "connection",
  "content-length",
  "cookie",
  "expect",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const OWN = "x-trunkline-";

export function storedHeaders(
  headers: HeaderList,
  { source, eventId, eventType }: { source: string; eventId: string; eventType?: string },
): HeaderList {
  return [
    ...headers.filter(([name]) => !DROPPED.has(name) && !name.startsWith(OWN)),
    [`${OWN}event-source`, source],
    [`${OWN}event-id`, fieldValue(eventId)],
    ...(eventType === undefined ? [] : ([[`${OWN}event-type`, fieldValue(eventType)]] as const)),
  ].map(([name, value]) => [name, value]);
}

/** Percent-encodes characters that a header must not contain: ids and types from bodies may contain any. */
const fieldValue = (text: string) =>
  text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
