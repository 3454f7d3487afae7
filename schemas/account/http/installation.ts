/** Wire shapes of the installation's administrators. */
import { z } from "zod";
import { Email, Id } from "../../values.ts";

export const AdministratorPath = z.strictObject({ user_id: Id });

export const WireAdministrator = z.object({ user_id: Id, email: Email });

export const AddAdministrator = z
  .strictObject({
    email: Email.describe("The e-mail address of a user of this installation"),
    user_id: Id.describe("The user's own id, which GET /user and the console show after sign-in"),
  })
  .meta({ example: { email: "ada@example.com", user_id: "023e105f4ecef8ad9ca31a8372d0c353" } });
export type AddAdministrator = z.output<typeof AddAdministrator>;

export const RemovedAdministrator = z.object({ user_id: Id });
