/** The address of a repository. */
import { z } from "zod";
import { Id } from "../values.ts";
import { NamespaceName, RepoName } from "./git-names.ts";

export const RepoAddress = z.object({ accountId: Id, namespace: NamespaceName, name: RepoName });
export type RepoAddress = z.infer<typeof RepoAddress>;
