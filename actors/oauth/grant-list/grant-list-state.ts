/** What is kept of what a person has allowed. */
import { z } from "zod";
import { AllowedClient } from "../../../schemas/oauth/grant-list.ts";

/** Under the client's id. */
export const AllowedClientRow = AllowedClient;
export type AllowedClientRow = z.infer<typeof AllowedClientRow>;

export const GrantListState = z.object({
  /** Of the first release, and not touched since: each becomes a row when it changes. */
  clients: z.array(AllowedClient),
});
export type GrantListState = z.infer<typeof GrantListState>;
