/** Tasks of the worker that removes the data of apps: bundles, logs, and databases of agents. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

export const appPurge = defineTasks({
  kind: "app-purge",
  lanes: ["purge"],
  messages: {
    /** Removes all data of an app, which is given by its key. The app's actor is then notified with `purged`. */
    purge: { lane: "purge", input: z.object({ app: z.string() }) },
    removeBundle: { lane: "purge", input: z.object({ bundle: z.string() }) },
  },
});
