/** The worker that imports repositories. It runs in gateways, which have git, its cache and its process slots. */
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { IMPORT_MS_MAX } from "../../../schemas/repositories/limits.ts";
import { type ImportProgress, repo } from "../../../schemas/repositories/repo.ts";
import { repoImport } from "../../../schemas/repositories/repo-import.ts";
import { type ImportParts, importRepo } from "./import-repo.ts";

/** Imports that one gateway runs at the same time. Each occupies a git process, the disk and the network. */
const IMPORT_SLOTS = 2;
/**
 * The shortest interval between two progress reports of an import. Each report is a commit of the repository's actor.
 */
const IMPORT_PROGRESS_MS = 1_000;

/** `toldMs` is the shortest interval between two progress reports. */
export function importWorker(parts: ImportParts & { toldMs?: number }) {
  return defineWorker(repoImport, {
    slots: { import: IMPORT_SLOTS },
    // The import has its own, shorter limit, so that the import itself reports the timeout.
    runMsMax: 2 * IMPORT_MS_MAX,
    handlers: {
      async fetch(origin, { key, signal }) {
        const reportProgress = seldom(parts.toldMs ?? IMPORT_PROGRESS_MS, (progress) => {
          // A lost report does no harm, because newer reports follow.
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

/** Limits progress reports to one per interval. A new step is reported immediately. */
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
