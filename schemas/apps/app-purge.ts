/** The contract of the worker that removes what apps kept: bundles, logs, and databases of agents. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

export const appPurge = defineTasks({
  kind: "app-purge",
  lanes: ["purge"],
  messages: {
    /** Everything of an app (by its key), which then hears `purged`. */
    purge: { lane: "purge", input: z.object({ app: z.string() }) },
    removeBundle: { lane: "purge", input: z.object({ bundle: z.string() }) },
  },
});
