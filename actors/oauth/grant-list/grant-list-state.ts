/** State of the clients that a person has authorized. */
import { z } from "zod";
import { AllowedClient } from "../../../schemas/oauth/grant-list.ts";

/** Under the client's id. */
export const AllowedClientRow = AllowedClient;
export type AllowedClientRow = z.infer<typeof AllowedClientRow>;

export const GrantListState = z.object({
  /** Entries of the first release. Each becomes a row with its next change. */
  clients: z.array(AllowedClient),
});
export type GrantListState = z.infer<typeof GrantListState>;
