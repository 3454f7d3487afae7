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
    /** Sent before the token itself is made, so that every token can be found. Repeating it changes nothing. */
    issue: { input: z.object({ repoId: RepoId, forgetAt: EpochMs }), reply: Nothing },
    /** Refuses where it is unknown. */
    find: { input: Nothing, reply: z.object({ repoId: RepoId }) },
    /** Reminder: the token expired long ago, so its record is deleted. */
    forget: { input: Nothing },
  },
});
