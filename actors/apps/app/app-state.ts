/** The stored state of an app. */
import { z } from "zod";
import { AppVersion, SealedSecret } from "../../../schemas/apps/app.ts";
import { AppConfig } from "../../../schemas/apps/app-config.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";

export const AppState = z.object({
  /** Absent if the app does not exist. `deleting` until all its data is deleted; then the state is removed. */
  status: z.enum(["there", "deleting"]).optional(),
  /** Id of this app. An earlier app of the same name had another id. */
  id: Id.optional(),
  createdAt: EpochMs.optional(),
  updatedAt: EpochMs.optional(),
  /** The number the next version gets. */
  next: z.int().min(1),
  serving: z.int().min(1).optional(),
  /** Grows with every change of the code, the configuration or the secrets that processes are started with. */
  revision: z.int().min(0),
});
export type AppState = z.infer<typeof AppState>;

/** Row `version.<number>` or `secret.<name>`. These are rows because together they may be too large for one value. */
export const AppRow = z.union([
  z.object({ version: AppVersion, config: AppConfig }),
  z.object({ secret: SealedSecret }),
]);
export type AppRow = z.infer<typeof AppRow>;
