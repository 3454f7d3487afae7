/** Tells of paused requests what kind the page itself says they are: a fetch, an event stream, a text track. */
import type { CDPSession, Protocol } from "puppeteer-core";

/** How long a stopped request waits for the page to say what kind it is: both come from one browser, milliseconds apart. */
const REQUEST_TYPE_MS = 300;
/** Kinds of requests kept for those that are stopped late. */
const REQUEST_TYPES_KEPT = 1_000;

/** The resource type in lower case. */
export type TypeOf = (paused: Protocol.Fetch.RequestPausedEvent) => Promise<string>;

/** Works where the session's Network domain is on. The page's report and the pause may come in any order. */
export function requestTypes(session: CDPSession): TypeOf {
  const types = new Map<string, string>();
  const awaited = new Map<string, (type: string) => void>();
  session.on("Network.requestWillBeSent", ({ requestId, type = "Other" }) => {
    const known = type.toLowerCase();
    types.set(requestId, known);
    awaited.get(requestId)?.(known);
    for (const oldest of types.keys()) {
      if (types.size <= REQUEST_TYPES_KEPT) break;
      types.delete(oldest);
    }
  });
  return typeOf;

  async function typeOf({ networkId = "", resourceType }: Protocol.Fetch.RequestPausedEvent) {
    const known = types.get(networkId);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<string>();
    // Some requests no page reports, preflights among them.
    const timer = setTimeout(() => resolve(resourceType.toLowerCase()), REQUEST_TYPE_MS);
    awaited.set(networkId, resolve);
    const type = await promise;
    clearTimeout(timer);
    awaited.delete(networkId);
    return type;
  }
}
