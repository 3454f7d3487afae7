/** The stored ports of apps. */
import { z } from "zod";
import { AppPort } from "../../../schemas/apps/app-ports.ts";

export const AppPortsState = z.object({
  ports: z.array(AppPort),
  /** The port at which the search for the next free port begins. */
  next: z.int(),
});
export type AppPortsState = z.infer<typeof AppPortsState>;
