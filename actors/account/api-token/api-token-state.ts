/** State of an API token. The secret itself is never stored. */
import { z } from "zod";
import { GrantId } from "../../../schemas/account/api-token.ts";
import { Permission } from "../../../schemas/account/permissions.ts";
import { EpochMs, Id, Sha256 } from "../../../schemas/values.ts";

export const ApiTokenState = z.discriminatedUnion("status", [
  z.object({ status: z.literal("unknown") }),
  z.object({
    status: z.literal("issued"),
    accountId: Id,
    permissions: z.array(Permission),
    secretHash: Sha256,
    notBeforeAt: EpochMs.optional(),
    expiresAt: EpochMs.optional(),
    grantId: GrantId,
    isDisabled: z.boolean().optional(),
    lastUsedAt: EpochMs.optional(),
    /** Number of changes of `opens` so far. */
    changes: z.int().min(0).optional(),
  }),
  z.object({ status: z.literal("revoked") }),
]);
export type ApiTokenState = z.infer<typeof ApiTokenState>;
