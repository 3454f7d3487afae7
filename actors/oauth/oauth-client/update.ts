/** Applies a change to a client, and checks the rules between its fields, visibility and domain. */

import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { FAULTS_MAX } from "../../../schemas/limits.ts";
import { hostOf } from "../../../schemas/oauth/client-uris.ts";
import type { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { type Registration, settingsFaults } from "../../../schemas/oauth/oauth-client-settings.ts";
import { differences, type LoggedChange } from "./change-log.ts";
import { startVerification } from "./domain.ts";
import type { Domain, LiveClient } from "./oauth-client-state.ts";
import { checkPromotable, checkStaysPublic } from "./promotion.ts";
import { secretLog } from "./secrets.ts";

type Update = Input<(typeof oauthClient)["messages"]["update"]>;

interface Updated {
  state: LiveClient;
  logs: readonly LoggedChange[];
  /** Time of the next domain check. null: no further check. undefined: unchanged. */
  checkAt: number | null | undefined;
}

export function update(state: LiveClient, asked: Update, now: number): Updated {
  const registration = merge(state.registration, asked.patch);
  checkSettings(registration);
  const { domain, checkAt, logs: domainLogs } = verifyAnew(state, asked, now);
  const promoted = checkVisibility(state, { ...asked, registration, domain });
  const changes = differences(state.registration, registration);
  const dropped = registration.tokenEndpointAuthMethod === "none" ? state.secrets : [];
  const logs: LoggedChange[] = [
    ...(changes.length > 0 ? [{ action: "updated" as const, changes }] : []),
    ...dropped.map((secret) => secretLog("secret_removed", secret)),
    ...(promoted ? [{ action: "promoted" as const }] : []),
    ...domainLogs,
  ];
  const { domain: _, ...others } = state;
  const next: LiveClient = {
    ...others,
    registration,
    secrets: dropped.length > 0 ? [] : state.secrets,
    ...(domain && { domain }),
    ...(promoted && { visibility: "public", promotedAt: now }),
    ...((promoted || changes.length > 0) && { updatedAt: now }),
  };
  return { state: logs.length > 0 || checkAt !== undefined ? next : state, logs, checkAt };
}

/**
 * Throws `invalid_request` if a field is invalid or does not fit the other fields, or if all fields together are too
 * long. The error lists each fault, at most FAULTS_MAX of them.
 */
export function checkSettings(registration: Registration): void {
  const faults = settingsFaults(registration)
    .slice(0, FAULTS_MAX)
    .map(({ path, text }) => {
      const pointer = path.map((step) => `/${step}`).join("");
      return { pointer, message: `Cannot accept ${pointer || "body"}: ${text}` };
    });
  if (faults.length === 0) return;
  throw new ActorError("invalid_request", "Cannot accept client: see its faults", { faults });
}

function merge(before: Registration, patch: Update["patch"]): Registration {
  const merged: Record<string, unknown> = { ...before };
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field];
    else if (value !== undefined) merged[field] = value;
  }
  // The cast is safe: each field of a patch has the type of the registration's field, or is null if the field is
  // optional.
  return merged as unknown as Registration;
}

interface Verifying {
  domain: Domain | undefined;
  checkAt: number | null | undefined;
  logs: readonly LoggedChange[];
}

/** A patch with `clientUri` starts a new verification, even if the URL is unchanged. */
function verifyAnew(state: LiveClient, { patch, pace }: Update, now: number): Verifying {
  const { domain } = state;
  const { clientUri } = patch;
  if (clientUri === undefined) return { domain, checkAt: undefined, logs: [] };
  if (clientUri === null) {
    return { domain: undefined, checkAt: domain && null, logs: [] };
  }
  return startVerification(hostOf(clientUri), pace, { before: domain, now });
}

/**
 * Returns whether the change makes the client public. Throws `conflict` if the change breaks a rule of public
 * clients.
 */
function checkVisibility(
  state: LiveClient,
  asked: Pick<Update, "visibility"> & { registration: Registration; domain: Domain | undefined },
): boolean {
  const { visibility, registration, domain } = asked;
  if (state.visibility === "public") {
    if (visibility === "private") {
      throw new ActorError("conflict", "Cannot make client private: it is public, for good");
    }
    checkStaysPublic(state, registration);
    return false;
  }
  if (visibility !== "public") return false;
  checkPromotable(registration, domain);
  return true;
}
