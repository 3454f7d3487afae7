/** Checks the scopes of an authorization request against those of its client. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { registrationOf } from "../clients/live-client.ts";
import { errors } from "../library/oidc-library.ts";

/** Checks the requested scopes. A request that names no scopes requests all scopes of its client. */
export function checkScopes(context: KoaContextWithOIDC): void {
  const { client, params, body } = context.oidc;
  const allowed = registrationOf(client)?.scopes ?? [];
  if (!params) return;
  // oidc-provider has removed unknown scopes from `params`. The client must learn that they are unknown, so they are
  // read from the request itself.
  const sent = context.method === "POST" ? body?.scope : context.query.scope;
  const requested = typeof sent === "string" && sent !== "" ? sent.split(" ") : allowed;
  const opening = requested.filter((id) => id !== "" && id !== "offline_access");
  params.scope ??= opening.join(" ");
  const missing = opening.find((id) => !allowed.some((scope) => scope === id));
  if (missing !== undefined) {
    refuseScope(missing, "The OAuth 2.0 Client is not allowed to request scope");
  }
  // The scope offline_access gives access to nothing by itself: it only extends how long the client has access.
  if (opening.length === 0) refuseScope("offline_access", "Nothing is asked for beside scope");
}

function refuseScope(scope: string, why: string): never {
  const text = `${why} '${scope}'.`;
  throw Object.assign(new errors.InvalidScope(text, scope), { error_description: text });
}
