/** What is kept of the ports of apps. */
import { z } from "zod";
import { AppPort } from "../../../schemas/apps/app-ports.ts";

export const AppPortsState = z.object({
  ports: z.array(AppPort),
  /** Where the search for the next port begins. */
  next: z.int(),
});
export type AppPortsState = z.infer<typeof AppPortsState>;
