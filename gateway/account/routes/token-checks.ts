/** Refuses values that a caller may not put into a token, and names the field. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type TokenEntry } from "../../../schemas/account/account.ts";
import type { CreateToken } from "../../../schemas/account/http/tokens.ts";
import {
  HIGHEST_ROLE,
  PERMISSIONS,
  type Permission,
  permits,
} from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { Caller } from "../../http/locals.ts";

export type TokenTimes = Pick<CreateToken, "not_before" | "expires_on">;

/** Checks that the policy names this account. Clients write `account.<id>`, some with another prefix before it. */
export function checkResources(
  { policies }: Pick<CreateToken, "policies">,
  accountId: string,
): void {
  const faults = policies.flatMap(({ resources = {} }, index) =>
    Object.keys(resources)
      .filter((resource) => !`.${resource}`.endsWith(`.account.${accountId}`))
      .map((resource) => {
        const pointer = `/policies/${index}/resources`;
        return {
          pointer,
          message: `Cannot accept ${pointer}: "${resource}" is not this account, expected "account.${accountId}"`,
        };
      }),
  );
  if (faults.length > 0) {
    throw new ActorError("invalid_request", "Cannot create token: see the faults", { faults });
  }
}

export function checkExpiry({ expires_on: text }: TokenTimes, now: number): void {
  if (text === undefined || Date.parse(text) > now) return;
  const pointer = "/expires_on";
  const message = `Cannot accept ${pointer}: "${text}" is past, expected a time after ${new Date(now).toISOString()}`;
  const faults = [{ pointer, message }];
  throw new ActorError("invalid_request", "Cannot create token: see the faults", { faults });
}

const missingOf = (permissions: readonly Permission[], caller: Caller) =>
  permissions.filter((permission) => !permits(caller.permissions, permission));

/** Returns whether the caller has all these permissions. */
export const holds = (permissions: readonly Permission[], caller: Caller): boolean =>
  missingOf(permissions, caller).length === 0;

/** Refuses permissions that the caller lacks. */
export function checkHeld(permissions: readonly Permission[], caller: Caller, verb: string): void {
  const missing = missingOf(permissions, caller);
  if (missing.length === 0) return;
  const names = missing.map((permission) => `"${PERMISSIONS[permission]}"`).join(", ");
  throw new ActorError("forbidden", `Cannot ${verb} token: the caller's own token lacks ${names}`);
}

/** Refuses an end that would make a token valid longer than the caller's own. */
export function checkLifetime(expiresAt: number | undefined, caller: Caller, verb: string): void {
  const end = endBefore(expiresAt, caller);
  if (end === undefined) return;
  const pointer = "/expires_on";
  const message = `Cannot accept ${pointer}: the caller's own token ends before that, expected a time up to ${end}`;
  const faults = [{ pointer, message }];
  throw new ActorError("invalid_request", `Cannot ${verb} token: see the faults`, { faults });
}

/** Refuses to give the caller the secret of a token that is valid longer than the caller's own. */
export function checkRoll({ expiresAt }: Pick<TokenEntry, "expiresAt">, caller: Caller): void {
  const end = endBefore(expiresAt, caller);
  if (end === undefined) return;
  const text = `Cannot roll token: it is valid longer than the caller's own token, which ends at ${end}`;
  throw new ActorError("forbidden", text);
}

/**
 * Returns when the caller's own API token ends, if it ends before this time. The end of an OAuth access token is no
 * limit: tokens that it creates end with its grant.
 */
function endBefore(
  expiresAt = Number.POSITIVE_INFINITY,
  { scopes, expiresAt: end = Number.POSITIVE_INFINITY }: Caller,
): string | undefined {
  return scopes === undefined && expiresAt > end ? new Date(end).toISOString() : undefined;
}

/**
 * Refuses the token of a member with the highest role if the caller acts for a person without this role: with its
 * secret, the person could do what only that member may do. A token without an owner may change every member, so it
 * counts as such a token. `findPerson` resolves to the caller's person; undefined for a caller of which no person is
 * known.
 */
export async function checkOwner(
  actors: ActorClient,
  { accountId, owner }: { accountId: string; owner: string | undefined },
  findPerson: () => Promise<string | undefined>,
): Promise<void> {
  const person = await findPerson();
  if (person === undefined || person === owner) return;
  const { members } = await actors.call(account, accountId, "listMembers", {});
  const isHighest = (id: string) =>
    members.some(({ userId, roles }) => userId === id && roles.includes(HIGHEST_ROLE));
  if ((owner !== undefined && !isHighest(owner)) || isHighest(person)) return;
  const text = `Cannot roll token: it may do what only a ${HIGHEST_ROLE} may do, and you do not have this role`;
  throw new ActorError("forbidden", text);
}
