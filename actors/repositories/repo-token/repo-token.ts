/** Stores which repository a token opens, until long after the token has expired. */
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { RepoId } from "../../../schemas/repositories/git-names.ts";
import { repoToken } from "../../../schemas/repositories/repo-token.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

export const RepoTokenState = z.object({ repoId: RepoId.nullable() });

/**
 * Stored at: account id, `.`, the token's public id
 *
 * State: `{ repoId }`: the repository that the token opens; deleted 30 days after the token expires
 */
export const repoTokenActor = defineActor(repoToken, {
  state: RepoTokenState,
  initial: { repoId: null },

  handlers: {
    issue(state, { repoId, forgetAt }) {
      if (state.repoId === repoId) return { state, reply: {} };
      if (state.repoId !== null) throw new ActorError("conflict", "Cannot mint token: it is known");
      return { state: { repoId }, remind: { forget: forgetAt }, reply: {} };
    },

    find(state) {
      if (state.repoId === null) throw new ActorError("not_found", "Token not found");
      return { state, reply: { repoId: state.repoId } };
    },

    forget: () => ({ forget: true }),
  },
});
