/** Wire shapes of the installation's administrators. */
import { z } from "zod";
import { Email, Id } from "../../values.ts";

export const AdministratorPath = z.strictObject({ user_id: Id });

export const WireAdministrator = z.object({ user_id: Id, email: Email });

export const AddAdministrator = z
  .strictObject({ email: Email.describe("Of a person who has an account here") })
  .meta({ example: { email: "ada@example.com" } });
export type AddAdministrator = z.output<typeof AddAdministrator>;

export const RemovedAdministrator = z.object({ user_id: Id });
