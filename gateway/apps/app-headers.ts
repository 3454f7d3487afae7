/** Selects the headers that are passed to an app and back from it. */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { HeaderList } from "../../schemas/apps/app-exchange.ts";

/**
 * Headers that are not passed on: hop-by-hop headers (RFC 9110, section 7.6.1), and headers that HTTP itself sets for
 * each message.
 */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Headers that only the platform may set on a request, including those that agents send to each other internally. */
const OURS = new Set([
  "x-agents-lifecycle-props",
  "x-trunkline-agent-props",
  "x-trunkline-event-id",
  "x-trunkline-event-source",
  "x-trunkline-event-type",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
]);
/** Headers that would affect the platform's whole origin if an app answers at a path below it. */
const OF_ORIGIN = new Set([
  "set-cookie",
  "clear-site-data",
  "service-worker-allowed",
  "strict-transport-security",
  "alt-svc",
  "nel",
  "report-to",
  "reporting-endpoints",
]);
const SANDBOX = "sandbox";
/**
 * An app below the platform's origin must not request a password. The browser would show the request as the
 * platform's, and could send a password that was entered for another path.
 */
const ASKS_FOR_PASSWORD = /\b(?:basic|digest|negotiate|ntlm)\b/i;

/**
 * Returns the headers for an app. `isOwnOrigin`: the request was sent to the app's own origin, so its cookies are the
 * app's. With `cookiePrefix`, the host also has cookies of other apps. Then only cookies whose names begin with the
 * prefix are the app's.
 */
export function requestHeaders(
  request: IncomingMessage,
  {
    isOwnOrigin,
    cookiePrefix,
    client,
  }: { isOwnOrigin: boolean; cookiePrefix?: string | undefined; client: string | undefined },
): HeaderList {
  const listed = new Set(
    (request.headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()),
  );
  const headers: HeaderList = [];
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index]?.toLowerCase() ?? "";
    const isApps =
      !HOP_BY_HOP.has(name) &&
      !OURS.has(name) &&
      !listed.has(name) &&
      // `expect` is not passed on, because the gateway reads the body and sends it as a whole.
      name !== "expect" &&
      (isOwnOrigin || name !== "cookie");
    const said = request.rawHeaders[index + 1] ?? "";
    const value = name === "cookie" && cookiePrefix ? ownCookies(said, cookiePrefix) : said;
    if (isApps && (name !== "cookie" || value !== "")) headers.push([name, value]);
  }
  if (client !== undefined) headers.push(["x-forwarded-for", client]);
  return headers;
}

/**
 * Returns the headers of an app's response. `prefix` is the path of the app below the platform's URL; absent at the
 * app's own origin.
 */
export function answerHeaders(
  headers: HeaderList,
  { prefix, cookiePrefix }: { prefix: string | undefined; cookiePrefix?: string | undefined },
): OutgoingHttpHeaders {
  const out: Record<string, string | string[]> = {};
  for (const [given, said] of headers) {
    const name = given.toLowerCase();
    if (HOP_BY_HOP.has(name) || name === "content-length") continue;
    if (prefix !== undefined && OF_ORIGIN.has(name)) continue;
    if (prefix !== undefined && name === "www-authenticate" && ASKS_FOR_PASSWORD.test(said))
      continue;
    const isClearing = name === "clear-site-data";
    const value = isClearing ? withoutCookies(said) : said;
    if (isClearing && value === "") continue;
    const known = out[name];
    if (name === "set-cookie") {
      const cookie = ofThisHost(value);
      const kept = cookiePrefix === undefined ? cookie : ofThisApp(cookie, cookiePrefix);
      out[name] = [known ?? []].flat().concat(kept);
    } else if (known === undefined) out[name] = value;
    else out[name] = `${known}, ${value}`;
  }
  if (prefix !== undefined) {
    const policy = out["content-security-policy"];
    // A browser applies all given policies together (Content Security Policy 3, section 4.4), so SANDBOX is added.
    out["content-security-policy"] =
      policy === undefined ? SANDBOX : [policy].flat().concat(SANDBOX);
    out["x-content-type-options"] = "nosniff";
    const { location } = out;
    if (typeof location === "string" && /^\/(?![/\\])/.test(location)) {
      out.location = prefix + location;
    }
  }
  return out;
}

/**
 * Removes the clearing of cookies, because browsers clear the cookies of the whole registered domain. These include
 * cookies of other apps, and of the platform if it shares the domain.
 */
const withoutCookies = (cleared: string) =>
  cleared
    .replaceAll('"*"', '"cache", "storage", "executionContexts"')
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== '"cookies"' && one !== "")
    .join(", ");

/** Removes the domain of a cookie, because a cookie for a parent domain would be sent to every other app. */
const ofThisHost = (cookie: string) => cookie.replaceAll(/;\s*domain\s*(=[^;]*)?(?=;|$)/gi, "");

/**
 * Prefixes the cookie's name, because all ports of a host share its cookies. Only the gateway and the browser know
 * the prefix, so no other app can set a cookie for this one. Scripts may not read the cookie, because they could also
 * read those of all other apps.
 */
function ofThisApp(cookie: string, cookiePrefix: string): string {
  const isHidden = /;\s*httponly\s*(=[^;]*)?(;|$)/i.test(cookie);
  return cookiePrefix + cookie.trimStart() + (isHidden ? "" : "; HttpOnly");
}

/** Returns the cookies of one app, under the names that the app gave them. */
function ownCookies(header: string, cookiePrefix: string): string {
  return header
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one.startsWith(cookiePrefix))
    .map((one) => one.slice(cookiePrefix.length))
    .join("; ");
}
