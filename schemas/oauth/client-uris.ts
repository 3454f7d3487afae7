/** Checks the addresses of OAuth clients. Each check returns the fault, or undefined. */

const LOOPBACK = String.raw`(127\.0\.0\.1|\[::1\]|localhost)`;
const LOOPBACK_URI = new RegExp(`^http://${LOOPBACK}(:\\d{1,5})?([/?]|$)`);
const LOOPBACK_ORIGIN = new RegExp(`^http://${LOOPBACK}(:\\d{1,5})?$`);
const LOOPBACK_HTTPS = new RegExp(`^https://${LOOPBACK}(:\\d{1,5})?([/?]|$)`);
const SCHEME = /^([a-z][a-z0-9+.-]*):/;
/**
 * The characters of a URI (RFC 3986 section 2). All others must be percent-encoded. A backslash is not allowed,
 * because only some parsers treat it as a slash.
 */
const URI_CHARACTERS = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;

/**
 * Checks a redirect URI (RFC 6749 section 3.1.2, RFC 8252 sections 7 and 8.4). It must have https, http on a loopback
 * address, or a custom scheme of an app. Only clients without a secret may use a custom scheme. The scheme must
 * contain a dot, as a reversed domain name does.
 */
export function redirectUriFault(uri: string, { isPublic }: { isPublic: boolean }) {
  const fault = commonFault(uri);
  if (fault !== undefined) return fault;
  if (uri.includes("*"))
    return "Expected no *: a redirect URI must match exactly, so register each address";
  const scheme = SCHEME.exec(uri)?.[1];
  if (scheme === "https") return webFault(uri);
  if (scheme === "http") {
    if (LOOPBACK_URI.test(uri)) return webFault(uri);
    return "Expected https, or http with the host 127.0.0.1, [::1] or localhost";
  }
  if (scheme === undefined || !scheme.includes(".")) {
    return "Expected https, http on a loopback address, or a scheme with a dot such as com.example.app:";
  }
  if (isPublic) return undefined;
  return 'Expected https, or http on a loopback address: only clients with token_endpoint_auth_method "none" have a scheme of their own';
}

/** Returns whether the URI has a custom scheme, which any app can claim (RFC 8252 section 7.1). */
export const hasOwnScheme = (uri: string) => !/^https?:/.test(uri);

/**
 * Checks a redirect URI of an app on a device. RFC 8252 section 7.2: such an app can claim https addresses, but not
 * for a loopback host.
 */
export function nativeUriFault(uri: string) {
  return LOOPBACK_HTTPS.test(uri)
    ? "Expected http on a loopback address: this client cannot use https there"
    : undefined;
}

/** Checks a link to a page about the client. */
export function webUriFault(uri: string) {
  const fault = commonFault(uri);
  if (fault !== undefined) return fault;
  return uri.startsWith("https://") ? webFault(uri) : "Expected an https URL";
}

/** Checks client_uri. Its host must be a DNS name, because DNS verifies it. */
export function clientUriFault(uri: string) {
  const fault = webUriFault(uri);
  if (fault !== undefined) return fault;
  const host = hostOf(uri);
  const isName = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(host) && /[a-z][^.]*$/.test(host);
  return isName && host.length <= 253
    ? undefined
    : "Expected a host with a full domain name, such as app.example.com";
}

/** Checks a web origin (RFC 6454 section 6.2). */
export function originFault(origin: string) {
  if (!URI_CHARACTERS.test(origin) || !URL.canParse(origin)) return expectedOrigin;
  if (!origin.startsWith("https://") && !LOOPBACK_ORIGIN.test(origin)) return expectedOrigin;
  return origin.includes("*") || new URL(origin).origin !== origin ? expectedOrigin : undefined;
}
const expectedOrigin =
  'Expected an origin, such as "https://app.example.com": a scheme (https, or http on a loopback address), a host, and a port unless it is the default';

/** Returns the host of a valid URL, without its port. */
export const hostOf = (uri: string) => new URL(uri).hostname;

/**
 * Returns whether the requested redirect URI matches the registered one. Both must be the same text (RFC 6749 section
 * 3.1.2.3), except that a loopback address may have any port (RFC 8252 section 7.3).
 */
export function matchesRedirectUri(registered: string, asked: string): boolean {
  if (registered === asked) return true;
  const portless = (uri: string) =>
    LOOPBACK_URI.test(uri)
      ? uri.replace(/^(http:\/\/(?:\[::1\]|[^:/?]+)):\d{1,5}/, "$1")
      : undefined;
  const expected = portless(registered);
  return expected !== undefined && portless(asked) === expected && commonFault(asked) === undefined;
}

function commonFault(uri: string): string | undefined {
  if (!URI_CHARACTERS.test(uri)) {
    return "Expected a URI of ASCII characters, all others percent-encoded";
  }
  if (!URL.canParse(uri)) return 'Expected a URI, such as "https://app.example.com/callback"';
  if (uri.includes("#")) return 'Expected no fragment, which begins with "#"';
  const [, authority = ""] = /^[^:]+:\/\/([^/?]*)/.exec(uri) ?? [];
  if (authority.includes("@")) return 'Expected no user information, which ends with "@"';
  return undefined;
}

/** Addresses are compared as texts, so each address must have the one normal form. */
function webFault(uri: string): string | undefined {
  const { href, origin } = new URL(uri);
  if (href === uri || (href === `${origin}/` && uri === origin)) return undefined;
  return `Expected it in its normal form, "${href}"`;
}
