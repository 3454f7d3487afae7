/** Holds back who tries one invented client, secret, code or token after another at the endpoints that programs use. */
import type { Request } from "express";
import type { KoaContextWithOIDC } from "oidc-provider";
import type { FailedAuthentications } from "../failed-authentications.ts";
import { errors, Provider } from "./oidc-library.ts";
import { recordsOf } from "./request-records.ts";
import { sha256 } from "./token-text.ts";

const ROUTES = ["token", "revocation", "introspection", "userinfo"];

class TooManyRequests extends errors.OIDCProviderError {
  override error_description = "too many unknown clients or tokens came from this address";

  constructor() {
    super(429, "rate_limited");
    this.expose = true;
  }
}

/** Before anything is looked up of what a request brings. Once a request. */
export function beginTry(failed: FailedAuthentications): void {
  const context = Provider.ctx;
  const records = recordsOf(context);
  if (!context || records.proof !== undefined || !ROUTES.includes(context.oidc?.route)) return;
  const proof = proofOf(context);
  const retryAfterS = failed.begin(addressOf(context), proof);
  if (retryAfterS > 0) {
    context.set("Retry-After", String(retryAfterS));
    throw new TooManyRequests();
  }
  records.proof = proof;
}

/** Once the answer is known. */
export function settleTry(failed: FailedAuthentications, context: KoaContextWithOIDC): void {
  const { proof } = recordsOf(context);
  if (proof !== undefined) failed.settle(addressOf(context), proof, outcomeOf(context));
}

function outcomeOf({ status, body, oidc }: KoaContextWithOIDC): "good" | "unknown" | "unclear" {
  const { client, entities, route } = oidc;
  const error = (body as { error?: unknown } | undefined)?.error;
  if (status === 401) return "unknown";
  // Who has proved to be the client invents nothing; of a client without a secret everybody knows the id.
  const isProven = client !== undefined && client.clientAuthMethod !== "none";
  if (error === "invalid_grant") return isProven ? "good" : "unknown";
  if (status >= 400) return "unclear";
  const isFound = entities.AccessToken ?? entities.RefreshToken;
  return isProven || isFound || route === "token" ? "good" : "unknown";
}

/** What is to be known again when it was good: a client's secret, else the token itself. */
function proofOf({ headers, oidc }: KoaContextWithOIDC): string {
  const { client_id, client_secret, refresh_token, code, token } = oidc.body ?? {};
  const { authorization } = headers;
  const secret = authorization ?? client_secret;
  return sha256(
    JSON.stringify(secret ? [client_id, secret] : [client_id, refresh_token, code, token]),
  );
}

const addressOf = ({ req }: KoaContextWithOIDC) => (req as Request).ip ?? "";
