/** The task that imports a public repository. */
import { defineTasks } from "../contract.ts";
import { RepoAddress, RepoOrigin } from "./repo.ts";

export const repoImport = defineTasks({
  kind: "repo-import",
  lanes: ["import"],
  messages: {
    /**
     * Imports into a repository that exists and is empty. The key is the repository's id. At its end the task sends
     * `importEnded` to the repository.
     */
    fetch: { lane: "import", input: RepoOrigin.extend({ address: RepoAddress }) },
  },
});
