/** Messages by which an import reports to its repository. */
import { z } from "zod";
import { ObjectId } from "./git-names.ts";
import { REPO_SHALLOW_MAX } from "./limits.ts";

const Nothing = z.object({});

/** Commits whose parents are not in the repository, as in git's file `shallow`. */
export const Shallow = z.array(ObjectId).max(REPO_SHALLOW_MAX);

/** The progress of an import: its current step and the completed share of that step. */
export const ImportProgress = z.object({
  step: z.enum(["asking", "receiving", "resolving", "checking", "large_files"]),
  percent: z.int().min(0).max(100).nullable(),
});
export type ImportProgress = z.infer<typeof ImportProgress>;

export const repoImportMessages = {
  /** The import reports the commits at which the history ends, before it adds any content. */
  importShallow: { input: z.object({ commits: Shallow }), reply: Nothing },
  /**
   * The import describes the parts that it could not import, before it adds any refs. A repetition of the import ends
   * early if the repository has refs, and reads the text. Changes nothing after the end of the import.
   */
  importLacks: { input: z.object({ lacking: z.string().nullable() }), reply: Nothing },
  /** The import reports its progress from time to time. */
  importProgressed: { input: ImportProgress },
  /** The import reports its end, with the reason if it failed. */
  importEnded: {
    input: z.object({
      failure: z.string().nullable(),
      /** Describes the parts that could not be imported, although the repository is ready. */
      lacking: z.string().nullable().optional(),
      readOnly: z.boolean(),
    }),
  },
};
