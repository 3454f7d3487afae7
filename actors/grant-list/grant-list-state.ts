/** What is kept of what a person has allowed. */
import { z } from "zod";
import { AllowedClient } from "../../schemas/grant-list.ts";

export const GrantListState = z.object({
  /** The latest consent last. */
  clients: z.array(AllowedClient),
});
export type GrantListState = z.infer<typeof GrantListState>;
