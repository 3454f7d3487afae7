/** The try-it flow: the console is the client for once, from the authorization request to introspection. */
import { addressOf, ROOT } from "../lib/router.tsx";

/** The redirect URI of the try-it flow. The URI names no account, so one serves all. */
export const tryItRedirectUri = () => location.origin + addressOf("oauth-clients/try-it");

/** The data of a flow that must survive the sign-in and consent pages. */
export interface Attempt {
  clientId: string;
  accountId: string;
  method: string;
  state: string;
  verifier: string;
}

const STORED = "trunkline-try-it";

export function storedAttempt(): Attempt | undefined {
  const text = sessionStorage.getItem(STORED);
  return text === null ? undefined : (JSON.parse(text) as Attempt);
}

/** Returns the address of the authorization request, and keeps what its answer must fit. */
export async function beginAttempt(
  about: Pick<Attempt, "clientId" | "accountId" | "method">,
  scopes: readonly string[],
): Promise<string> {
  // Browsers hash for https and loopback alone. Elsewhere the flow goes without PKCE, which clients with a secret may.
  const verifier = crypto.subtle ? randomText() : "";
  const attempt: Attempt = { ...about, state: randomText(), verifier };
  sessionStorage.setItem(STORED, JSON.stringify(attempt));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: attempt.clientId,
    redirect_uri: tryItRedirectUri(),
    scope: scopes.join(" "),
    state: attempt.state,
    ...(verifier && {
      code_challenge: await challengeOf(verifier),
      code_challenge_method: "S256",
    }),
  });
  return `${ROOT}/oauth2/auth?${query}`;
}

async function challengeOf(verifier: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64Url(new Uint8Array(hash));
}

const randomText = () => base64Url(crypto.getRandomValues(new Uint8Array(32)));

const base64Url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

export interface OAuthAnswer {
  status: number;
  body: Record<string, unknown>;
}

/** Asks an endpoint of the authorization server as the client. */
export async function askAsClient(
  endpoint: "token" | "introspect",
  fields: Record<string, string>,
  { clientId, method, secret }: { clientId: string; method: string; secret: string },
): Promise<OAuthAnswer> {
  const isBasic = method === "client_secret_basic";
  const own = isBasic ? {} : { client_id: clientId, ...(secret && { client_secret: secret }) };
  const response = await fetch(`${ROOT}/oauth2/${endpoint}`, {
    method: "POST",
    credentials: "omit",
    headers: isBasic ? { Authorization: `Basic ${btoa(`${clientId}:${secret}`)}` } : {},
    body: new URLSearchParams({ ...fields, ...own }),
  });
  return { status: response.status, body: await response.json() };
}
