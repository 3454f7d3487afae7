/** Checks the scopes of an authorization request against those of its client. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { registrationOf } from "../clients/live-client.ts";
import { errors } from "../library/oidc-library.ts";

/** A request without scopes requests all scopes of its client. */
export function checkScopes(context: KoaContextWithOIDC): void {
  const { client, params, body } = context.oidc;
  const allowed = registrationOf(client)?.scopes ?? [];
  if (!params) return;
  // oidc-provider has removed unknown scopes from `params`, so the request itself is read: the client must learn of
  // them.
  const sent = context.method === "POST" ? body?.scope : context.query.scope;
  const requested = typeof sent === "string" && sent !== "" ? sent.split(" ") : allowed;
  const opening = requested.filter((id) => id !== "" && id !== "offline_access");
  params.scope ??= opening.join(" ");
  const missing = opening.find((id) => !allowed.some((scope) => scope === id));
  if (missing !== undefined) {
    refuseScope(missing, "The OAuth 2.0 Client is not allowed to request scope");
  }
  // offline_access alone opens nothing: it only extends the time.
  if (opening.length === 0) refuseScope("offline_access", "Nothing is asked for beside scope");
}

function refuseScope(scope: string, why: string): never {
  const text = `${why} '${scope}'.`;
  throw Object.assign(new errors.InvalidScope(text, scope), { error_description: text });
}
