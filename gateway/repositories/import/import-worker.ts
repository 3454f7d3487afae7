/** The worker that imports repositories. It runs in gateways, which have git, its cache and its process slots. */
import { FairSemaphore } from "../../../actors/runtime/lib/fair-semaphore.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import { TASK_TRIES_MAX } from "../../../schemas/limits.ts";
import { gitStorage } from "../../../schemas/repositories/git-storage.ts";
import { IMPORTS_PER_ACCOUNT_MAX } from "../../../schemas/repositories/limits.ts";
import { type ImportProgress, repo } from "../../../schemas/repositories/repo.ts";
import { repoImport } from "../../../schemas/repositories/repo-import.ts";
import { type ImportParts, importRepo } from "./import-repo.ts";

/**
 * Imports that one gateway takes from the lane. Those without a slot wait in the gateway, which lets accounts take
 * turns. Three accounts at IMPORTS_PER_ACCOUNT_MAX leave room for the imports of others.
 */
const IMPORTS_TAKEN_MAX = 4 * IMPORTS_PER_ACCOUNT_MAX;
/**
 * Imports that one gateway runs at the same time. Each occupies a git process, the disk and the network. One account
 * runs at most all but one of them.
 */
export const IMPORT_SLOTS = 3;
/** Limit for the time that an import runs, and waits in a gateway. After it, the import has failed. */
const IMPORT_TAKEN_MS_MAX = 24 * 60 * 60_000;
/**
 * The shortest interval between two progress reports of an import. Each report is a commit of the repository's actor.
 */
const IMPORT_PROGRESS_MS = 1_000;

/** `toldMs` is the shortest interval between two progress reports. */
export function importWorker(parts: ImportParts & { toldMs?: number }) {
  const slots = new FairSemaphore({ places: IMPORT_SLOTS, reserved: 1 });
  return defineWorker(repoImport, {
    slots: { import: IMPORTS_TAKEN_MAX },
    // A running import has its own, shorter limit, so that the import itself reports the timeout.
    runMsMax: IMPORT_TAKEN_MS_MAX,
    handlers: {
      async fetch(origin, { key, signal, attempt }) {
        const { accountId } = origin.address;
        using ends = new DisposableStack();
        ends.defer(await slots.take(accountId, signal));
        const reportProgress = seldom(parts.toldMs ?? IMPORT_PROGRESS_MS, (progress) => {
          // A lost report does no harm, because newer reports follow.
          parts.actors.send(repo, key, "importProgressed", progress).catch(() => {});
        });
        const asked = { ...origin, id: key };
        const lacking = await importRepo(parts, asked, signal, reportProgress).catch((error) =>
          attempt < TASK_TRIES_MAX ? tryAgain(error) : Promise.reject(error),
        );
        const { readOnly } = origin;
        const ended = { failure: null, lacking, readOnly };
        return { send: [envelope(repo, key, "importEnded", ended), placeFreed(accountId, key)] };
      },
    },
    failures: {
      fetch({ address, readOnly }, error, { key }) {
        const failure =
          error instanceof ActorError && error.code !== "internal_error"
            ? error.message
            : "A fault on our side; delete it and import again";
        const ended = { failure, readOnly };
        return [envelope(repo, key, "importEnded", ended), placeFreed(address.accountId, key)];
      },
    },
  });
}

/**
 * Replaces a temporary refusal of this platform by a plain error, after which the task is retried. Faults of the origin
 * have other codes. At the last try the refusal stays, because its text tells the user what is wrong.
 */
function tryAgain(error: unknown): never {
  throw isPassing(error) ? new Error("Cannot import at present", { cause: error }) : error;
}

/**
 * The worker frees the place, not the repository. A repository may be deleted while its import runs, and the import
 * counts until it ends.
 */
const placeFreed = (accountId: string, id: string) =>
  envelope(gitStorage, accountId, "importEnded", { id });

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
