/** The worker that keeps packs few: it runs where git, its cache and its slots are. */
import { defineWorker } from "../../actors/runtime/define-worker.ts";
import { envelope } from "../../schemas/contract.ts";
import { UPKEEP_SLOTS } from "../../schemas/git-limits.ts";
import { gitUpkeep } from "../../schemas/git-upkeep.ts";
import { repo } from "../../schemas/repo.ts";
import { compactPacks } from "./compact-packs.ts";
import type { GitParts } from "./git-parts.ts";
import { type SweepParts, sweepPacks } from "./sweep-packs.ts";

export function upkeepWorker(parts: GitParts, sweeping: SweepParts) {
  return defineWorker(gitUpkeep, {
    slots: { upkeep: UPKEEP_SLOTS },
    handlers: {
      async compact({ address, prune }, context) {
        await compactPacks(parts, address, { prune }, context);
        return { send: [envelope(repo, context.key, "upkeepEnded", { pruned: prune })] };
      },
      async sweep(_input, context) {
        await sweepPacks(sweeping, context);
        return {};
      },
    },
    failures: {
      // The repository has it tried again, later.
      compact: (_input, _error, { key }) => [envelope(repo, key, "upkeepEnded", { pruned: false })],
      // The next sweep is sure to come.
      sweep: () => [],
    },
  });
}
