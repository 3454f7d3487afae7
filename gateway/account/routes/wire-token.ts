/** API tokens in the form that the REST API returns. */
import type { z } from "zod";
import type { TokenEntry } from "../../../schemas/account/account.ts";
import type { WireToken } from "../../../schemas/account/http/tokens.ts";
import { PERMISSIONS, type Permission } from "../../../schemas/account/permissions.ts";
import type { Caller } from "../../http/locals.ts";

/** `now`: epoch milliseconds. A token whose grant has ended is shown as expired. */
export function wireToken(
  token: TokenEntry,
  {
    accountId,
    now,
    hasGrantEnded = false,
  }: { accountId: string; now: number; hasGrantEnded?: boolean },
): z.input<typeof WireToken> {
  const expired = hasGrantEnded || (token.expiresAt !== undefined && now >= token.expiresAt);
  return {
    id: token.id,
    name: token.name,
    status: expired ? "expired" : token.isDisabled ? "disabled" : "active",
    last_four: token.lastFour,
    issued_on: new Date(token.createdAt).toISOString(),
    ...(token.lastUsedAt !== undefined && {
      last_used_on: new Date(token.lastUsedAt).toISOString(),
    }),
    ...wireValidity(token),
    policies: [
      {
        effect: "allow",
        permission_groups: token.permissions.map(permissionGroup),
        resources: { [`account.${accountId}`]: "*" },
      },
    ],
  };
}

export function permissionGroup(id: Permission) {
  return { id, name: PERMISSIONS[id] };
}

export function wireValidity({ notBeforeAt, expiresAt }: Partial<TokenEntry> | Caller) {
  return {
    ...(notBeforeAt === undefined ? {} : { not_before: new Date(notBeforeAt).toISOString() }),
    ...(expiresAt === undefined ? {} : { expires_on: new Date(expiresAt).toISOString() }),
  };
}
