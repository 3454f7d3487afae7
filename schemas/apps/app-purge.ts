/** Tasks of the worker that removes the data of apps: bundles, logs, and databases of agents. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { Id } from "../values.ts";

export const appPurge = defineTasks({
  kind: "app-purge",
  lanes: ["purge"],
  messages: {
    /**
     * Removes all data of an app, which is given by its key. The app's actor is then notified with `purged`, or with
     * `purgeFailed`. `id` is the app's id: the task does nothing for a later app of the same name. Tasks of earlier
     * versions have no id.
     */
    purge: { lane: "purge", input: z.object({ app: z.string(), id: Id.optional() }) },
    removeBundle: { lane: "purge", input: z.object({ bundle: z.string() }) },
  },
});
