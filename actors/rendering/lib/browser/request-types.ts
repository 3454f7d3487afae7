/** Finds the type of paused requests as the page itself reports it: a fetch, an event stream, a text track. */
import type { CDPSession, Protocol } from "puppeteer-core";

/**
 * Maximum time that an intercepted request waits until the page reports its type. Both events come from one browser,
 * milliseconds apart.
 */
const REQUEST_TYPE_MS = 300;
/** Maximum reported types that are kept for requests that are intercepted later. */
const REQUEST_TYPES_KEPT = 1_000;

/** The resource type in lower case. */
export type TypeOf = (paused: Protocol.Fetch.RequestPausedEvent) => Promise<string>;

/**
 * Returns the types of requests. The Network domain of the session must be enabled. The page's report and the pause
 * event may arrive in either order.
 */
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
    // The page does not report some requests, for example preflights. Their type is then that of the pause event.
    const timer = setTimeout(() => resolve(resourceType.toLowerCase()), REQUEST_TYPE_MS);
    awaited.set(networkId, resolve);
    const type = await promise;
    clearTimeout(timer);
    awaited.delete(networkId);
    return type;
  }
}
