/** The tasks that keep the packs of repositories few, and the store without those that nobody needs. */
import { z } from "zod";
import { defineTasks } from "./contract.ts";
import { RepoAddress } from "./repo.ts";

export const gitUpkeep = defineTasks({
  kind: "git-upkeep",
  lanes: ["upkeep"],
  messages: {
    /**
     * Puts packs of a repository together; where `prune`, all of them, without what no ref leads to. The key is its id.
     * It hears `upkeepEnded`.
     */
    compact: {
      lane: "upkeep",
      input: z.object({ address: RepoAddress, prune: z.boolean() }),
    },
    /** Holds all stored packs against all repositories. The key is PACK_SWEEP. */
    sweep: { lane: "upkeep", input: z.object({}) },
  },
});
