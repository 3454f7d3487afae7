/** Which headers go to an app and come back from it. */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { HeaderList } from "../../schemas/apps/app-exchange.ts";

/** RFC 9110 section 7.6.1, and what HTTP itself says of the message: none of it is the app's. */
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
/** Said of a request by us alone; and what agents tell each other inside. */
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
/** Headers that would affect our whole origin, if an app answers at a path below it. */
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
 * An app under our origin must not send a password challenge. The browser would show it as ours, and would send a
 * password that was typed for another path.
 */
const ASKS_FOR_PASSWORD = /\b(?:basic|digest|negotiate|ntlm)\b/i;

/**
 * `isOwnOrigin`: it came to the app's own origin, whose cookies are the app's. With `cookiePrefix` the host has cookies
 * of other apps too, and those are the app's whose names begin so.
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
      // The body is read and sent as a whole.
      name !== "expect" &&
      (isOwnOrigin || name !== "cookie");
    const said = request.rawHeaders[index + 1] ?? "";
    const value = name === "cookie" && cookiePrefix ? ownCookies(said, cookiePrefix) : said;
    if (isApps && (name !== "cookie" || value !== "")) headers.push([name, value]);
  }
  if (client !== undefined) headers.push(["x-forwarded-for", client]);
  return headers;
}

/** `prefix`: what stands before the app's own paths at our address; absent at its own origin. */
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
    // All given policies hold together (Content Security Policy 3, section 4.4).
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

/** Cookies are cleared for all of a registered domain: those of other apps, and ours where we share it. */
const withoutCookies = (cleared: string) =>
  cleared
    .replaceAll('"*"', '"cache", "storage", "executionContexts"')
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== '"cookies"' && one !== "")
    .join(", ");

/** A cookie is its app's alone: one for a parent domain would be sent to every other app. */
const ofThisHost = (cookie: string) => cookie.replaceAll(/;\s*domain\s*(=[^;]*)?(?=;|$)/gi, "");

/**
 * Ports share the cookies of their host. The prefix is a secret of the gateway and the browser, so that no other app
 * can set a cookie for this one; scripts read none, because they would read those of all apps.
 */
function ofThisApp(cookie: string, cookiePrefix: string): string {
  const isHidden = /;\s*httponly\s*(=[^;]*)?(;|$)/i.test(cookie);
  return cookiePrefix + cookie.trimStart() + (isHidden ? "" : "; HttpOnly");
}

/** The cookies of one app, under the names that it gave them. */
function ownCookies(header: string, cookiePrefix: string): string {
  return header
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one.startsWith(cookiePrefix))
    .map((one) => one.slice(cookiePrefix.length))
    .join("; ");
}
