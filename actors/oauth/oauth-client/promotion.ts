/** The conditions under which a client may become public, and stay public. */

import { ActorError } from "../../../schemas/errors.ts";
import { hostOf } from "../../../schemas/oauth/client-uris.ts";
import type { Registration } from "../../../schemas/oauth/oauth-client-settings.ts";
import { isIdentityScope } from "../../../schemas/oauth/scopes.ts";
import type { Domain, LiveClient } from "./oauth-client-state.ts";

interface Missing {
  pointer: string;
  what: string;
}

/** Throws `conflict`, with one fault for each missing condition. */
export function checkPromotable(registration: Registration, domain: Domain | undefined): void {
  const missing = [...missingParts(registration), ...missingProof(registration, domain)];
  refuse("Cannot make client public", missing);
}

/** Throws `conflict` if a change of a public client would remove a required field or change its host. */
export function checkStaysPublic({ registration: before }: LiveClient, after: Registration): void {
  const missing = missingParts(after);
  const moved =
    before.clientUri !== undefined &&
    after.clientUri !== undefined &&
    hostOf(before.clientUri) !== hostOf(after.clientUri);
  if (moved) {
    missing.push({
      pointer: "/client_uri",
      what: `the host "${hostOf(before.clientUri)}", which was verified`,
    });
  }
  refuse("Cannot change client, which is public", missing);
}

function missingParts({ clientName, logoUri, clientUri, scopes }: Registration): Missing[] {
  const missing: Missing[] = [];
  if (clientName === "") missing.push({ pointer: "/client_name", what: "a name" });
  if (logoUri === undefined) missing.push({ pointer: "/logo_uri", what: "a logo" });
  if (clientUri === undefined) missing.push({ pointer: "/client_uri", what: "a client URL" });
  if (scopes.every(isIdentityScope)) {
    missing.push({ pointer: "/scopes", what: "a scope that opens something of an account" });
  }
  return missing;
}

function missingProof({ clientUri }: Registration, domain: Domain | undefined): Missing[] {
  if (clientUri === undefined || domain === undefined) return [];
  const { status, missingSince, host } = domain;
  if (status === "verified" && missingSince === undefined) return [];
  const found = status === "verified" ? "its record no longer exists" : `it is ${status}`;
  return [{ pointer: "/client_uri", what: `a verified domain: of "${host}" ${found}` }];
}

function refuse(what: string, missing: readonly Missing[]): void {
  if (missing.length === 0) return;
  const faults = missing.map(({ pointer, what: part }) => ({
    pointer,
    message: `${what}: ${pointer} lacks ${part}`,
  }));
  throw new ActorError("conflict", faults.map(({ message }) => message).join("; "), { faults });
}
