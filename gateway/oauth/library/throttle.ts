/** Limits how often programs can guess client ids, secrets, codes and tokens at the OAuth endpoints. */
import type { Request } from "express";
import type { KoaContextWithOIDC } from "oidc-provider";
import { ActorError } from "../../../schemas/errors.ts";
import type { Credential, FailedAuthentications } from "../../account/failed-authentications.ts";
import { clientSignal } from "../../http/client-signal.ts";
import { sha256 } from "../../http/sha256.ts";
import { readTokenText } from "../tokens/token-text.ts";
import { errors, Provider } from "./oidc-library.ts";
import { recordsOf } from "./request-records.ts";

const ROUTES = ["token", "revocation", "introspection", "userinfo"];

const TOO_MANY_GUESSES = "too many unknown clients or tokens came from this address";

export class TooManyRequests extends errors.OIDCProviderError {
  constructor(description: string) {
    super(429, "rate_limited");
    this.error_description = description;
    this.expose = true;
  }
}

/**
 * Begins the attempt to authenticate before any credential of the request is looked up. `clientId` is the client that
 * the request names.
 */
export async function beginAttempt(
  failed: FailedAuthentications,
  clientId?: string,
): Promise<void> {
  const context = Provider.ctx;
  const records = recordsOf(context);
  if (!context || !ROUTES.includes(context.oidc?.route)) return;
  const begin = () => {
    const left = clientSignal(context.res);
    return failed.begin(addressOf(context), credentialOf(context, clientId), left);
  };
  records.attempt ??= begin().catch((error: unknown) => {
    const { retryAfterS = 1 } = error instanceof ActorError ? error.details : {};
    context.set("Retry-After", String(retryAfterS));
    throw new TooManyRequests(TOO_MANY_GUESSES);
  });
  await records.attempt;
}

/**
 * Reports the outcome of the attempt when the answer of oidc-provider is known. Past the limit, a request with an
 * unknown credential is answered with 429 instead of the answer of the endpoint.
 */
export async function settleAttempt(context: KoaContextWithOIDC): Promise<void> {
  const attempt = await recordsOf(context).attempt?.catch(() => undefined);
  const retryAfterS = attempt?.settle(outcomeOf(context)) ?? 0;
  if (retryAfterS === 0) return;
  const { error, error_description, statusCode } = new TooManyRequests(TOO_MANY_GUESSES);
  context.remove("WWW-Authenticate");
  context.set("Retry-After", String(retryAfterS));
  context.status = statusCode;
  context.body = { error, error_description };
}

function outcomeOf({ status, body, oidc }: KoaContextWithOIDC): "good" | "unknown" | "unclear" {
  const { client, entities, route } = oidc;
  const error = (body as { error?: unknown } | undefined)?.error;
  if (status === 401) return "unknown";
  // The limit of refreshes was reached, not a limit of guesses.
  if (status === 429) return "unclear";
  // A client that authenticated with its secret makes no guess. The id of a public client proves nothing, because
  // everybody knows it.
  const isProven = client !== undefined && client.clientAuthMethod !== "none";
  if (error === "invalid_grant") return isProven ? "good" : "unknown";
  const isFound = entities.AccessToken ?? entities.RefreshToken ?? entities.AuthorizationCode;
  // A guess is counted even if the request fails for another reason.
  const isGuess = !isProven && !isFound && textsOf(oidc.body).length > 0;
  if (status >= 400) return status < 500 && isGuess ? "unknown" : "unclear";
  return isProven || isFound || route === "token" ? "good" : "unknown";
}

/**
 * Returns the credential by which the attempt is counted. A secret counts as a guess at the client. A request without
 * a secret (public client, userinfo) counts as a guess at the grant of its token, because all users of a public
 * client share one client id.
 */
function credentialOf({ headers, oidc }: KoaContextWithOIDC, clientId = ""): Credential {
  const { client_secret } = oidc.body ?? {};
  const { authorization } = headers;
  const bearer = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  const secret = bearer === undefined ? (authorization ?? client_secret) : undefined;
  if (secret) return { identity: clientId, proof: sha256(JSON.stringify([clientId, secret])) };
  const texts = [...(bearer === undefined ? [] : [bearer]), ...textsOf(oidc.body)];
  const grantIds = texts.flatMap((text) => readTokenText(text)?.grantId ?? []);
  const identity = grantIds[0] ?? clientId;
  return { identity, proof: sha256(JSON.stringify([clientId, ...texts])) };
}

/** Returns the tokens and codes that a request sends. */
function textsOf({
  refresh_token,
  code,
  token,
}: KoaContextWithOIDC["oidc"]["body"] = {}): string[] {
  return [refresh_token, code, token].filter((text) => typeof text === "string");
}

const addressOf = ({ req }: KoaContextWithOIDC) => (req as Request).ip ?? "";
