/** Refuses changes of a repository while its first content still arrives. */
import { ActorError } from "../errors.ts";
import type { RepoStatus } from "./repo.ts";

/**
 * Refuses with `import_in_progress` or `fork_in_progress`. Only the import or the fork itself may change the
 * repository; another change would make it fail. `refused` begins the message, such as "Cannot push".
 */
export function checkComplete(status: RepoStatus, refused: string): void {
  if (status === "importing") {
    throw new ActorError("import_in_progress", `${refused}: the repository is being imported`);
  }
  if (status === "forking") {
    throw new ActorError("fork_in_progress", `${refused}: the repository is being forked`);
  }
}
