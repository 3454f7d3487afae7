/** The tasks that compact the packs of repositories and delete unnamed packs from the store. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { ObjectId } from "./git-names.ts";
import { EVENT_OTHERS_MAX, EVENT_REFS_MAX } from "./limits.ts";
import { RepoAddress } from "./repo.ts";
import { RefChange } from "./repo-event.ts";

export const gitUpkeep = defineTasks({
  kind: "git-upkeep",
  lanes: ["upkeep", "events"],
  messages: {
    /**
     * Compacts packs of a repository. With `prune` compacts all of them and drops objects that no ref reaches. The
     * key is the repository's id. The task sends it `upkeepEnded`.
     */
    compact: {
      lane: "upkeep",
      input: z.object({ address: RepoAddress, prune: z.boolean() }),
    },
    /**
     * Looks for the commits that a push brought. The key is the repository's id; `repo-events` of its account hears
     * `described`.
     */
    describe: {
      lane: "events",
      input: z.object({
        address: RepoAddress,
        changes: z
          .array(RefChange.extend({ number: z.int().min(1) }))
          .min(1)
          .max(EVENT_REFS_MAX),
        others: z.array(ObjectId).max(EVENT_OTHERS_MAX),
      }),
    },
    /** Holds all stored packs against all repositories. The key is PACK_SWEEP. */
    sweep: { lane: "upkeep", input: z.object({}) },
  },
});
