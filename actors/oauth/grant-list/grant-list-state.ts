/** State of the clients that a person has authorized. */
import { z } from "zod";
import { AllowedClient } from "../../../schemas/oauth/grant-list.ts";

/** A row of the grant list. Its name is the client's id. */
export const AllowedClientRow = AllowedClient;
export type AllowedClientRow = z.infer<typeof AllowedClientRow>;

export const GrantListState = z.object({
  /** Entries that the first release stored. Each is moved to a row when it changes. */
  clients: z.array(AllowedClient),
});
export type GrantListState = z.infer<typeof GrantListState>;
