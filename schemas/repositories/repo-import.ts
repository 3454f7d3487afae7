/** The task that brings a public repository here. */
import { defineTasks } from "../contract.ts";
import { RepoAddress, RepoOrigin } from "./repo.ts";

export const repoImport = defineTasks({
  kind: "repo-import",
  lanes: ["import"],
  messages: {
    /** The key is the repository's id, which is made and empty. It hears `importEnded`. */
    fetch: { lane: "import", input: RepoOrigin.extend({ address: RepoAddress }) },
  },
});
