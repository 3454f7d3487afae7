/** Corrects answers of oidc-provider that differ from the standards or from our own answers. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { setRetryAfter } from "../../http/retry-after.ts";
import type { ProviderParts } from "./provider-parts.ts";

/** How long a client may cache the server's metadata, which changes only with a new release. */
const METADATA_MS = 3_600_000;

/** The HTTP status of each error that the client did not cause. All other errors have status 400. */
const STATUSES: Record<string, number> = { temporarily_unavailable: 503, server_error: 500 };

export function finishAnswer(
  context: KoaContextWithOIDC,
  { pages, cookies, introspections }: Pick<ProviderParts, "pages" | "cookies" | "introspections">,
): void {
  const { route, session } = context.oidc ?? {};
  if (route === "discovery" && context.status === 200) {
    const body = context.body as { token_endpoint_auth_methods_supported?: string[] };
    const methods = body.token_endpoint_auth_methods_supported;
    // RFC 8414 section 2: if these lists are missing, a client assumes client_secret_basic. But only some clients are
    // registered for that method.
    Object.assign(body, {
      response_modes_supported: ["query"],
      revocation_endpoint_auth_methods_supported: methods,
      introspection_endpoint_auth_methods_supported: methods,
    });
    context.set("Cache-Control", `public, max-age=${METADATA_MS / 1_000}`);
  }
  if (route === "introspection" && context.status === 200) {
    introspections.record(context.req, context.body as object);
  }
  if (route === "token" && context.status === 400) nameUnauthorized(context);
  // oidc-provider would use the refused response mode for this error too: it would send a page that submits itself
  // with a script.
  if (route === "authorization" && context.oidc.params?.response_mode === "form_post") {
    context.status = 400;
    const error_description = "requested response_mode is not allowed";
    pages.error(context, { error: "invalid_request", error_description });
    return;
  }
  if (route === "authorization" || route === "resume") askBeforeLeading(context, pages);
  if (!context.response.get("Retry-After")) setRetryAfter(context.res, context.status);
  if (!session || context.status !== 200) return;
  // oidc-provider answers these requests with a page that submits itself with a script. Our pages replace it: a
  // sign-out while nobody is signed in needs no confirmation, and a resumed request of another person is refused.
  if (route === "end_session" && session.accountId === undefined) {
    forgetSession(context, cookies.session);
    pages.loggedOut(context, afterLogout(session.state as LogoutState | undefined));
  } else if (route === "resume") {
    const error_description = "Somebody else signed in meanwhile: go back and start again";
    pages.error(context, { error: "invalid_request", error_description });
  }
}

/**
 * Sets the error `unauthorized_client`, which RFC 6749 section 5.2 requires when a client may not use the requested
 * grant type.
 */
function nameUnauthorized({ oidc: { client, params }, body }: KoaContextWithOIDC): void {
  const answer = body as { error?: string };
  const type = params?.grant_type;
  if (answer.error !== "invalid_request" || typeof type !== "string") return;
  if (client && !client.grantTypeAllowed(type)) answer.error = "unauthorized_client";
}

/**
 * Shows a page instead of redirecting an invalid request. RFC 9700 section 4.11.2: otherwise a link with an invalid
 * request redirects its visitor to a site that the attacker chose. The page is shown with and without a session. A
 * redirect only for signed-in people would reveal to that site who is signed in. Exceptions: silent authentication,
 * and requests that continue after our pages.
 */
function askBeforeLeading(context: KoaContextWithOIDC, pages: ProviderParts["pages"]): void {
  const { route, session, params } = context.oidc;
  const target = URL.parse(context.response.get("location"));
  // In the implicit flow, errors are in the fragment of the address instead of the query.
  const parts = [target?.search, target?.hash.slice(1)].map((text) => new URLSearchParams(text));
  const errorFields = parts.find((part) => part.has("error"));
  const error = errorFields?.get("error");
  if (!target || !error || params?.prompt === "none") return;
  if (route === "resume" && session?.accountId !== undefined) return;
  const error_description = errorFields?.get("error_description") ?? undefined;
  context.remove("Location");
  context.status = STATUSES[error] ?? 400;
  pages.error(context, { error, ...(error_description && { error_description }) }, target);
}

interface LogoutState {
  postLogoutRedirectUri?: string;
  state?: string;
}

/**
 * Returns the client's address after sign-out, for a link. Nobody was signed in, so the server does not redirect; the
 * person may follow the link.
 */
function afterLogout({ postLogoutRedirectUri, state }: LogoutState = {}): URL | undefined {
  if (postLogoutRedirectUri === undefined) return undefined;
  const target = new URL(postLogoutRedirectUri);
  if (state !== undefined) target.searchParams.set("state", state);
  return target;
}

/** Removes the session cookie from the answer if nobody is signed in at this browser. */
function forgetSession(context: KoaContextWithOIDC, name: string): void {
  const set = [context.response.get("Set-Cookie")].flat();
  context.remove("Set-Cookie");
  const others = set.filter((cookie) => cookie !== "" && !cookie.startsWith(`${name}=`));
  if (others.length > 0) context.set("Set-Cookie", others);
}
