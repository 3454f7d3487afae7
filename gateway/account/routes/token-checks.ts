/** Refuses values that a caller may not put into a token, and names the field. */
import type { CreateToken } from "../../../schemas/account/http/tokens.ts";
import { PERMISSIONS, type Permission, permits } from "../../../schemas/account/permissions.ts";
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

/** Refuses permissions that the caller lacks. */
export function checkHeld(permissions: readonly Permission[], caller: Caller, verb: string): void {
  const missing = permissions.filter((permission) => !permits(caller.permissions, permission));
  if (missing.length === 0) return;
  const names = missing.map((permission) => `"${PERMISSIONS[permission]}"`).join(", ");
  throw new ActorError("forbidden", `Cannot ${verb} token: the caller's own token lacks ${names}`);
}
