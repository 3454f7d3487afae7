/** The worker that imports repositories: it runs where git, its cache and its slots are. */
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { IMPORT_MS_MAX } from "../../../schemas/repositories/limits.ts";
import { type ImportProgress, repo } from "../../../schemas/repositories/repo.ts";
import { repoImport } from "../../../schemas/repositories/repo-import.ts";
import { type ImportParts, importRepo } from "./import-repo.ts";

/** Imports of one gateway at a time: each holds a git process, disk and the network. */
const IMPORT_SLOTS = 2;
/** How often an import says how far it is, at most: each time is a commit of its repository. */
const IMPORT_PROGRESS_MS = 1_000;

/** `toldMs`: how often it says how far it is, at most. */
export function importWorker(parts: ImportParts & { toldMs?: number }) {
  return defineWorker(repoImport, {
    slots: { import: IMPORT_SLOTS },
    // The import itself reports that it took too long.
    runMsMax: 2 * IMPORT_MS_MAX,
    handlers: {
      async fetch(origin, { key, signal }) {
        const reportProgress = seldom(parts.toldMs ?? IMPORT_PROGRESS_MS, (progress) => {
          // A lost report is repeated, or replaced by a newer one.
          parts.actors.send(repo, key, "importProgressed", progress).catch(() => {});
        });
        const lacking = await importRepo(parts, { ...origin, id: key }, signal, reportProgress);
        const { readOnly } = origin;
        const ended = { failure: null, lacking, readOnly };
        return { send: [envelope(repo, key, "importEnded", ended)] };
      },
    },
    failures: {
      fetch({ readOnly }, error, { key }) {
        const failure =
          error instanceof ActorError && error.code !== "internal_error"
            ? error.message
            : "A fault on our side; delete it and import again";
        return [envelope(repo, key, "importEnded", { failure, readOnly })];
      },
    },
  });
}

/** Limits progress reports to one per interval. A new step is reported at once. */
function seldom(
  everyMs: number,
  tell: (progress: ImportProgress) => void,
): (progress: ImportProgress) => void {
  let last: { step: string; at: number } | undefined;
  return (progress) => {
    const at = performance.now();
    if (last?.step === progress.step && at - last.at < everyMs) return;
    last = { step: progress.step, at };
    tell(progress);
  };
}
