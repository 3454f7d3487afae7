/** What an authorization request asks for, held against what its client may ask for. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { registrationOf } from "../clients/live-client.ts";
import { errors } from "../library/oidc-library.ts";

/** Asks for all that the client may have where nothing is asked for. */
export function checkScopes(context: KoaContextWithOIDC): void {
  const { client, params, body } = context.oidc;
  const allowed = registrationOf(client)?.scopes ?? [];
  if (!params) return;
  // As it was sent: what the library does not know it has dropped by now, and the client would not hear of it.
  const sent = context.method === "POST" ? body?.scope : context.query.scope;
  const asked = typeof sent === "string" && sent !== "" ? sent.split(" ") : allowed;
  const opening = asked.filter((id) => id !== "" && id !== "offline_access");
  params.scope ??= opening.join(" ");
  const missing = opening.find((id) => !allowed.some((scope) => scope === id));
  if (missing !== undefined) {
    refuseScope(missing, "The OAuth 2.0 Client is not allowed to request scope");
  }
  // It says how long, not what.
  if (opening.length === 0) refuseScope("offline_access", "Nothing is asked for beside scope");
}

function refuseScope(scope: string, why: string): never {
  const text = `${why} '${scope}'.`;
  throw Object.assign(new errors.InvalidScope(text, scope), { error_description: text });
}
