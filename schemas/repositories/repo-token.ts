/**
 * The contract of the actor that finds a repository by the public id of one of its tokens. The key is `repoTokenKey`.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { RepoId } from "./git-names.ts";

const Nothing = z.object({});

export const repoTokenKey = (accountId: string, tokenId: string) => `${accountId}.${tokenId}`;

export const repoToken = defineContract({
  kind: "repo-token",
  messages: {
    /** Records a token before a client gets it, so that every token can be found. A repetition changes nothing. */
    issue: { input: z.object({ repoId: RepoId, forgetAt: EpochMs }), reply: Nothing },
    /** Refuses with `not_found` if the token is unknown. */
    find: { input: Nothing, reply: z.object({ repoId: RepoId }) },
    /** Reminder: the token expired long ago, so its record is deleted. */
    forget: { input: Nothing },
  },
});
