/** Messages that end a repository, or that prevent its creation. */
import { z } from "zod";
import { RepoAddress } from "./repo-address.ts";

const Nothing = z.object({});

export const repoRemovalMessages = {
  /**
   * Removes the repository. Its rows are deleted soon after, its packs by a later sweep. If it does not exist, it can
   * never be created. A repetition changes nothing.
   */
  remove: { input: Nothing, reply: Nothing },
  /**
   * Makes sure that a repository that does not exist can never be created, so that another repository may get its
   * name. Refuses with `conflict` if it exists.
   */
  refuseCreation: { input: Nothing, reply: Nothing },
  /**
   * The gateway reports that it could not create the repository, or does not know whether it did. The repository can
   * then never be created. If it exists and nobody has used it, it is removed.
   */
  creationFailed: { input: RepoAddress },
  /** The namespace reports that it has released the repository's name. The repository is then removed. */
  nameReleased: { input: Nothing },
};
