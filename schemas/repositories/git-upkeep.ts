/**
 * The tasks that compact the packs of repositories, find the commits of pushes, and delete unnamed packs from the
 * store.
 */
import { z } from "zod";
import { defineTasks } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { ObjectId } from "./git-names.ts";
import { EVENT_OTHERS_MAX, EVENT_REFS_MAX } from "./limits.ts";
import { RepoAddress } from "./repo.ts";
import { RefChange } from "./repo-event.ts";

export const gitUpkeep = defineTasks({
  kind: "git-upkeep",
  lanes: ["upkeep", "events", "sweep"],
  messages: {
    /**
     * Compacts packs of a repository. With `prune`, compacts all packs and drops objects that no ref reaches. The key
     * is the repository's id. At its end the task sends `upkeepEnded` to the repository.
     */
    compact: {
      lane: "upkeep",
      input: z.object({ address: RepoAddress, prune: z.boolean() }),
    },
    /**
     * Finds the commits that a push brought. The key is the repository's id. The task sends them in `described` to
     * the account's actor `repo-events`, without commits if the push is older than EVENT_DESCRIBED_MS.
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
        /** The time of the push. Tasks of older versions have none. */
        at: EpochMs.optional(),
      }),
    },
    /**
     * Compares all stored packs with the packs that repositories name, and deletes those that have long been unnamed.
     * The key is PACK_SWEEP. Older versions queue the task in the lane `upkeep`, from where workers run it, too.
     */
    sweep: { lane: "sweep", input: z.object({}) },
  },
});
