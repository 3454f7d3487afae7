/** The worker that imports repositories: it runs where git, its cache and its slots are. */
import { defineWorker } from "../../actors/runtime/define-worker.ts";
import { IMPORT_SLOTS } from "../../schemas/artifacts-limits.ts";
import { envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { repo } from "../../schemas/repo.ts";
import { repoImport } from "../../schemas/repo-import.ts";
import { type ImportParts, importRepo } from "./import-repo.ts";

export function importWorker(parts: ImportParts) {
  return defineWorker(repoImport, {
    slots: { import: IMPORT_SLOTS },
    handlers: {
      async fetch(origin, { key, signal }) {
        await importRepo(parts, { ...origin, id: key }, signal);
        const { readOnly } = origin;
        return { send: [envelope(repo, key, "importEnded", { failure: null, readOnly })] };
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
