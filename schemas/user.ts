/** The contract of a user: a person who signs in, and the accounts they belong to. The key is the e-mail address. */
import { z } from "zod";
import { Role } from "./account.ts";
import { defineContract } from "./contract.ts";
import { Email, Id } from "./values.ts";

export const Membership = z.object({ accountId: Id, role: Role });

export const user = defineContract({
  kind: "user",
  messages: {
    /** Repeating it with the same id changes nothing; with another it is a conflict. */
    register: {
      input: z.object({
        id: Id,
        email: Email,
        passwordHash: z.string().min(1).max(512).meta({ secret: true }),
        accounts: z.array(Membership).min(1),
      }),
      reply: z.object({}),
    },
    get: {
      input: z.object({}),
      reply: z.object({ id: Id, email: Email, accounts: z.array(Membership) }),
    },
  },
});
