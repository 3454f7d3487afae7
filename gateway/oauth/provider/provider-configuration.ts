/** The configuration of oidc-provider. */
import type { ClientAuthMethod, Configuration, KoaContextWithOIDC } from "oidc-provider";
import { SESSION_MS } from "../../../schemas/account/limits.ts";
import {
  ACCESS_TOKEN_MS,
  CODE_MS,
  GRANT_MS,
  REFRESH_TOKEN_MS,
} from "../../../schemas/oauth/limits.ts";
import { ALL_SCOPES } from "../../../schemas/oauth/scopes.ts";
import type { CookieNames } from "../../account/pages/browser-cookies.ts";
import { registrationOf } from "../clients/live-client.ts";
import { interactionPolicy } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import { actorAdapter } from "../stores/actor-adapter.ts";
import { Consents } from "./consents.ts";
import type { ProviderParts } from "./provider-parts.ts";
import { checkSize, isShortLogout, refuseLogout } from "./request-size.ts";
import { checkScopes } from "./requested-scopes.ts";
import type { ServerKeys } from "./signing-keys.ts";
import { unprovenClientCheck } from "./unproven-client.ts";

export const ID_TOKEN_MS = 3_600_000;
/** Time in which a person must sign in and decide. */
export const INTERACTION_MS = 10 * 60_000;

/** Paths of the pages on which the person continues an authorization request. */
const INTERACTION_PATHS = { login: "/login", consent: "/oauth2/consent" } as const;

/** Every token of this server belongs to a user. The types of oidc-provider allow tokens without a user. */
type GrantedToken = { clientId: string; accountId: string; grantId: string };

/** The settings of oidc-provider: the features in use, and the callbacks into our code. */
export function configuration(parts: ProviderParts, { jwks, secret }: ServerKeys): Configuration {
  const { actors, cookies, pages, publicUrl } = parts;
  const { origin: ownOrigin } = new URL(publicUrl);
  const consents = new Consents(actors);
  return {
    ...PROTOCOL,
    adapter: actorAdapter(parts),
    jwks,
    cookies: cookieSettings(cookies, secret),
    interactions: interactionSettings(parts),
    features: featureSettings(parts, consents),
    ttl: lifetimes(parts.now),
    renderError: async (context, out) => pages.error(context, out),
    loadExistingGrant: (context) => consents.grantFor(context),
    findAccount: findAccount(consents),
    // Decides which origins may use a client's credentials. Our own origin may: browsers send Origin also with a POST
    // of our own pages, and the console can test a client with the client's credentials.
    clientBasedCORS: (context, origin, client) =>
      origin === ownOrigin ||
      (context.oidc.route !== "introspection" &&
        registrationOf(client)?.allowedCorsOrigins.includes(origin) === true),
  };
}

/** Settings that are the same for every installation. */
const PROTOCOL = {
  scopes: [...ALL_SCOPES],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  // A client must send redirect_uri even if it has registered only one.
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
  // oidc-provider runs this check after it has verified the redirect URI and PKCE, so a refusal can be sent to the
  // client.
  extraParams: { checked: checkRequest } as NonNullable<Configuration["extraParams"]>,
  pkce: { required: (_context, client) => client.clientAuthMethod === "none" },
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: () => true,
  // A grant stays valid after the session in which it began has ended: the client also works while the person is
  // away.
  expiresWithSession: async () => false,
} satisfies Configuration;

function cookieSettings(cookies: CookieNames, secret: string): Configuration["cookies"] {
  const cookie = { httpOnly: true, sameSite: "lax", path: "/", signed: false } as const;
  return {
    keys: [secret],
    names: { session: cookies.session, interaction: "tl_interaction", resume: "tl_resume" },
    long: { ...cookie, secure: cookies.isSecure },
    short: { httpOnly: true, sameSite: "lax", secure: cookies.isSecure },
  };
}

function interactionSettings({ publicUrl }: ProviderParts): Configuration["interactions"] {
  const policy = interactionPolicy.base();
  const { checks } = policy.get("consent") ?? {};
  checks?.remove("native_client_prompt");
  checks?.add(unprovenClientCheck());
  const basePath = new URL(publicUrl).pathname.replace(/\/$/, "");
  return {
    policy,
    url(_context, { uid, prompt }) {
      const path = prompt.name === "login" ? INTERACTION_PATHS.login : INTERACTION_PATHS.consent;
      return `${basePath}${path}?interaction=${uid}`;
    },
  };
}

function featureSettings({ pages }: ProviderParts, consents: Consents): Configuration["features"] {
  return {
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
      // A client may introspect its own tokens. A token that the API would refuse is reported as inactive.
      async allowedPolicy(context, client, token) {
        const { clientId, accountId, grantId } = token as GrantedToken;
        if (clientId !== client.clientId) return false;
        return consents.stillAllowed(context, accountId, grantId);
      },
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource(context) {
        if (!isShortLogout(context)) refuseLogout(context, pages);
        else pages.confirmLogout(context, context.oidc.session?.state?.secret as string);
      },
      postLogoutSuccessSource: (context) => pages.loggedOut(context),
    },
  };
}

/** Returns the lifetimes of oidc-provider's records, in seconds. */
function lifetimes(now: () => number): Configuration["ttl"] {
  return {
    AccessToken: ACCESS_TOKEN_MS / 1_000,
    AuthorizationCode: CODE_MS / 1_000,
    RefreshToken: (context) => refreshTokenSeconds(context, now()),
    Grant: GRANT_MS / 1_000,
    IdToken: ID_TOKEN_MS / 1_000,
    Interaction: INTERACTION_MS / 1_000,
    Session: (_context, session) => sessionSeconds(session.exp, now()),
  };
}

function findAccount(consents: Consents): NonNullable<Configuration["findAccount"]> {
  return async (context, sub, token) => {
    if (token && !(await consents.stillAllowed(context, sub, token.grantId))) return undefined;
    const email = () => emailOf(context, token?.grantId);
    // The server does not verify e-mail addresses. So `email_verified` is false, and a client must not use the
    // address as proof of who owns the mailbox.
    const claims = async () => ({ sub, email: email(), email_verified: false });
    return { accountId: sub, claims };
  };
}

function checkRequest(context: KoaContextWithOIDC): void {
  checkScopes(context);
  checkSize({ ...context.oidc.params });
}

function refreshTokenSeconds(context: KoaContextWithOIDC, now: number): number {
  const grantExp = context.oidc.entities.Grant?.exp ?? Number.POSITIVE_INFINITY;
  const leftS = grantExp - Math.floor(now / 1_000);
  return Math.max(1, Math.min(REFRESH_TOKEN_MS / 1_000, leftS));
}

function sessionSeconds(exp: number | undefined, now: number): number {
  const left = exp === undefined ? SESSION_MS / 1_000 : exp - Math.floor(now / 1_000);
  return Math.max(1, left);
}

function emailOf(context: KoaContextWithOIDC, grantId: string | undefined): string | undefined {
  const { grants, email } = recordsOf(context);
  return grantId === undefined ? email : grants.get(grantId)?.email;
}
