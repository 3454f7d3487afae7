/** The library, set up for us: what it may do, who it asks, and how it answers a person. */

import {
  type ClientAuthMethod,
  type Configuration,
  type ErrorOut,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
  Provider,
} from "oidc-provider";
import type { Logger } from "pino";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { matchesRedirectUri } from "../../schemas/client-uris.ts";
import { oauthClient } from "../../schemas/oauth-client.ts";
import { SECRET_USED_EVERY_MS } from "../../schemas/oauth-limits.ts";
import {
  ACCESS_TOKEN_MS,
  CODE_MS,
  GRANT_MS,
  ID_TOKEN_MS,
  INTERACTION_MS,
  REFRESH_TOKEN_MS,
  SESSION_MS,
} from "../../schemas/oauth-server-limits.ts";
import { ALL_SCOPES } from "../../schemas/scopes.ts";
import { actorAdapter } from "./actor-adapter.ts";
import type { CookieNames } from "./browser-cookies.ts";
import { Consents } from "./consents.ts";
import { matchingSecret, type Registered } from "./live-client.ts";
import { withOAuthErrors } from "./oauth-errors.ts";
import { recordsOf } from "./request-records.ts";
import type { ServerKeys } from "./signing-keys.ts";
import { newGrantId, newTokenText, sha256 } from "./token-text.ts";

export interface ProviderParts {
  actors: ActorClient;
  logger: Logger;
  publicUrl: string;
  cookies: CookieNames;
  /** Pages for a person; each sets the answer's body. */
  pages: {
    error(context: KoaContextWithOIDC, error: ErrorOut): void;
    confirmLogout(context: KoaContextWithOIDC, secret: string): void;
    loggedOut(context: KoaContextWithOIDC): void;
  };
}

/** Where a person goes on with an authorization request. */
export const INTERACTION_PATHS = { login: "/login", consent: "/oauth2/consent" } as const;

type Client = InstanceType<Provider["Client"]>;

export const registrationOf = (client: Client | undefined) =>
  client?.registration as Registered | undefined;

export function makeProvider(parts: ProviderParts, keys: ServerKeys): Provider {
  const { logger, publicUrl } = parts;
  const actors = withOAuthErrors(parts.actors);
  const provider = new Provider(publicUrl, configuration({ ...parts, actors }, keys));
  provider.proxy = true;
  provider.on("server_error", (context, error) => {
    logger.error({ err: error, route: context.oidc?.route }, "authorization server failed");
  });
  adaptTokens(provider);
  adaptSession(provider);
  adaptClient(provider, actors, logger);
  provider.use(async (context, next) => {
    await next();
    finishAnswer(context as KoaContextWithOIDC, parts);
  });
  return provider;
}

function configuration(
  { actors, cookies, pages, publicUrl }: ProviderParts,
  { jwks, secret }: ServerKeys,
): Configuration {
  const consents = new Consents(actors);
  const policy = interactionPolicy.base();
  // What is remembered is remembered for every client; the check would ask again wherever an app is on a loopback address.
  policy.get("consent")?.checks.remove("native_client_prompt");
  const cookie = { httpOnly: true, sameSite: "lax", path: "/", signed: false } as const;
  const basePath = new URL(publicUrl).pathname.replace(/\/$/, "");
  return {
    adapter: actorAdapter(actors),
    jwks,
    cookies: {
      keys: [secret],
      names: { session: cookies.session, interaction: "tl_interaction", resume: "tl_resume" },
      long: { ...cookie, secure: cookies.isSecure },
      short: { httpOnly: true, sameSite: "lax", secure: cookies.isSecure },
    },
    scopes: [...ALL_SCOPES],
    claims: { openid: ["sub"], email: ["email"] },
    // A client says where it is led to, also where it has only one such address.
    allowOmittingSingleRegisteredRedirectUri: false,
    responseTypes: ["code"],
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none"] as ClientAuthMethod[],
    routes: {
      authorization: "/oauth2/auth",
      token: "/oauth2/token",
      revocation: "/oauth2/revoke",
      introspection: "/oauth2/introspect",
      userinfo: "/oauth2/userinfo",
      end_session: "/oauth2/logout",
      jwks: "/.well-known/jwks.json",
    },
    extraClientMetadata: { properties: ["registration"] },
    // Runs once the redirect URI and PKCE were checked, so that its refusal goes to the client.
    extraParams: { checked_scopes: checkScopes } as NonNullable<Configuration["extraParams"]>,
    interactions: {
      policy,
      url(_context, { uid, prompt }) {
        const path = prompt.name === "login" ? INTERACTION_PATHS.login : INTERACTION_PATHS.consent;
        return `${basePath}${path}?interaction=${uid}`;
      },
    },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: { enabled: false },
      userinfo: { enabled: true },
      revocation: {
        enabled: true,
        allowedPolicy: (_context, client, token) => token.clientId === client.clientId,
      },
      introspection: {
        enabled: true,
        allowedPolicy: (_context, client, token) => token.clientId === client.clientId,
      },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource(context) {
          pages.confirmLogout(context, context.oidc.session?.state?.secret as string);
        },
        postLogoutSuccessSource: (context) => pages.loggedOut(context),
      },
    },
    pkce: { required: (_context, client) => client.clientAuthMethod === "none" },
    renderError: async (context, out) => pages.error(context, out),
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: () => true,
    // A grant outlives the session in which it began: its client works while the person is away.
    expiresWithSession: async () => false,
    loadExistingGrant: (context) => consents.grantFor(context),
    ttl: {
      AccessToken: ACCESS_TOKEN_MS / 1_000,
      AuthorizationCode: CODE_MS / 1_000,
      RefreshToken: (context) => refreshTokenSeconds(context),
      Grant: GRANT_MS / 1_000,
      IdToken: ID_TOKEN_MS / 1_000,
      Interaction: INTERACTION_MS / 1_000,
      Session: (_context, session) => sessionSeconds(session.exp),
    },
    clientBasedCORS: (context, origin, client) =>
      context.oidc.route !== "introspection" &&
      registrationOf(client)?.allowedCorsOrigins.includes(origin) === true,
    findAccount: async (context, sub, token) => {
      if (token && !(await consents.stillAllowed(context, sub, token.grantId))) return undefined;
      const email = () => emailOf(context, token?.grantId);
      return { accountId: sub, claims: async () => ({ sub, email: email() }) };
    },
  };
}

function checkScopes(context: KoaContextWithOIDC): void {
  const { client, params, body } = context.oidc;
  const allowed = registrationOf(client)?.scopes ?? [];
  if (!params) return;
  // As it was sent: what the library does not know it has dropped by now, and the client would not hear of it.
  const sent = context.method === "POST" ? body?.scope : context.query.scope;
  params.scope ??= allowed.filter((scope) => scope !== "offline_access").join(" ");
  const asked = typeof sent === "string" ? sent : "";
  const missing = asked
    .split(" ")
    .find((id) => id !== "" && id !== "offline_access" && !allowed.some((scope) => scope === id));
  if (missing === undefined) return;
  const text = `The OAuth 2.0 Client is not allowed to request scope '${missing}'.`;
  throw Object.assign(new errors.InvalidScope(text, missing), { error_description: text });
}

function refreshTokenSeconds(context: KoaContextWithOIDC): number {
  const grantExp = context.oidc.entities.Grant?.exp ?? Number.POSITIVE_INFINITY;
  const leftS = grantExp - Math.floor(Date.now() / 1_000);
  return Math.max(1, Math.min(REFRESH_TOKEN_MS / 1_000, leftS));
}

function sessionSeconds(exp: number | undefined): number {
  const left = exp === undefined ? SESSION_MS / 1_000 : exp - Math.floor(Date.now() / 1_000);
  return Math.max(1, left);
}

function emailOf(context: KoaContextWithOIDC, grantId: string | undefined): string | undefined {
  const { grants, email } = recordsOf(context);
  return grantId === undefined ? email : grants.get(grantId)?.email;
}

/** Texts name their grant, since that is the actor which keeps them. */
function adaptTokens({ AuthorizationCode, AccessToken, RefreshToken, Grant }: Provider): void {
  const kinds = [
    [AuthorizationCode, "code"],
    [AccessToken, "access"],
    [RefreshToken, "refresh"],
  ] as const;
  for (const [{ prototype }, kind] of kinds) {
    const { generateTokenId } = prototype as unknown as { generateTokenId(): string };
    Object.assign(prototype, {
      generateTokenId(this: { grantId?: string }) {
        // What it makes is not used, but it also settles which form the token has.
        generateTokenId.call(this);
        return newTokenText(kind, this.grantId ?? "");
      },
    });
  }
  Object.assign(Grant.prototype, { generateTokenId: newGrantId });
}

/** Our own pages open sessions and end them: the library neither makes one nor gives it another name. */
function adaptSession({ Session }: Provider): void {
  Object.assign(Session.prototype, {
    resetIdentifier() {},
    loginAccount(this: { accountId?: string }, { accountId }: { accountId: string }) {
      if (this.accountId !== accountId) throw new errors.SessionNotFound("the sign-in has ended");
    },
  });
}

function adaptClient({ Client }: Provider, actors: ActorClient, logger: Logger): void {
  Object.assign(Client.prototype, {
    redirectUriAllowed(this: Client, uri: unknown) {
      return isAmong(this.redirectUris, uri);
    },
    postLogoutRedirectUriAllowed(this: Client, uri: unknown) {
      return isAmong(this.postLogoutRedirectUris, uri);
    },
    // A form that sends itself needs a script, and a fragment is for what is not a code and is refused next.
    responseModeAllowed: (mode: string | undefined, responseType: string) =>
      mode === undefined || mode === "query" || responseType !== "code",
    compareClientSecret(this: Client, given: string) {
      const registration = registrationOf(this);
      if (!registration) return false;
      const isBasic = Provider.ctx?.headers.authorization !== undefined;
      const match = matchingSecret(registration, sha256(given));
      if (!match || isBasic !== (this.clientAuthMethod === "client_secret_basic")) return false;
      if (Date.now() - match.lastUsedAt >= SECRET_USED_EVERY_MS) {
        const used = actors.send(oauthClient, this.clientId, "secretUsed", { secretId: match.id });
        used.catch((error: unknown) => logger.warn({ err: error }, "use of a secret not noted"));
      }
      return true;
    },
  });
}

const isAmong = (registered: readonly string[] | undefined, uri: unknown) =>
  typeof uri === "string" && registered?.some((known) => matchesRedirectUri(known, uri)) === true;

/** What the library answers in a way that ours do not. */
function finishAnswer(context: KoaContextWithOIDC, { pages }: ProviderParts): void {
  const { route, session } = context.oidc ?? {};
  if (route === "discovery" && context.status === 200) {
    Object.assign(context.body as object, { response_modes_supported: ["query"] });
  }
  // The library refuses it by the very form that is refused: a page that sends itself, by a script.
  if (route === "authorization" && context.oidc.params?.response_mode === "form_post") {
    context.status = 400;
    const error_description = "requested response_mode is not allowed";
    pages.error(context, { error: "invalid_request", error_description });
    return;
  }
  if (!session || context.status !== 200) return;
  const state = session.state as Record<string, string | undefined> | undefined;
  // Pages that send themselves: to sign out nobody, there is nothing to confirm.
  if (route === "end_session" && session.accountId === undefined) {
    const { postLogoutRedirectUri, state: given } = state ?? {};
    if (postLogoutRedirectUri === undefined) {
      pages.loggedOut(context);
      return;
    }
    const target = new URL(postLogoutRedirectUri);
    if (given !== undefined) target.searchParams.set("state", given);
    context.status = 303;
    context.redirect(target.href);
  } else if (route === "resume") {
    const error_description = "Somebody else signed in meanwhile: go back and start again";
    pages.error(context, { error: "invalid_request", error_description });
  }
}
