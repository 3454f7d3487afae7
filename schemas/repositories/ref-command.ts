/** One command of a push: a ref with its old and new value, and the result of the command. */
import { isProtected, isTag, refNameFault, ZERO_ID } from "./git-names.ts";

export interface RefCommand {
  old: string;
  value: string;
  ref: string;
}

interface RefStanding {
  /** The present value of the ref; ZERO_ID if there is none. */
  tip: string | undefined;
  protectedRefs: readonly string[];
  /** The ref of the default branch. */
  head: string;
  /** True if the new value keeps all commits of the old one, so that the command is a fast-forward. */
  isForward: boolean;
}

/**
 * The result of one command of a push, as a letter. With letters, the reply to a push of REFS_MAX commands is small
 * enough to be kept.
 */
export const REF_RESULTS = {
  o: "ok",
  f: "fetch first",
  n: "funny refname",
  c: "cannot lock ref: it conflicts with another ref's name",
  d: "protected ref: it cannot be deleted",
  h: "deletion of the current branch prohibited: choose another default branch first",
  p: "protected ref: only fast-forward updates are accepted",
  r: "the repository is read-only",
  m: "multiple updates for this ref in one push",
  t: "too many refs",
  q: "the repository would be too large",
  k: "the repository has too many packs; they are being compacted, push again later",
  g: "the repository was cleaned up during this push; push again",
  l: "the push took too long; push again",
  a: "atomic transaction failed",
} as const;
export type RefResult = keyof typeof REF_RESULTS;

/**
 * Returns the text that a client shows beside the ref. For an invalid name, the text says which names are valid; for a
 * protected tag, that it never moves.
 */
export function refResultText(result: RefResult, ref: string): string {
  if (result === "p" && isTag(ref)) return "protected tag: it cannot be moved";
  const fault = result === "n" ? refNameFault(ref) : undefined;
  return fault === undefined ? REF_RESULTS[result] : `${REF_RESULTS.n}: ${fault}`;
}

/**
 * Returns why the command fails at the ref's present value, as a letter of REF_RESULTS, regardless of the push's
 * other commands.
 */
export function commandFault(
  { old, value, ref }: RefCommand,
  { tip, protectedRefs, head, isForward }: RefStanding,
): "n" | "f" | "h" | "d" | "p" | undefined {
  if (refNameFault(ref) !== undefined) return "n";
  if (tip !== old) return "f";
  if (old === ZERO_ID || old === value) return undefined;
  const deletes = value === ZERO_ID;
  if (!isProtected(protectedRefs, ref)) return deletes && ref === head ? "h" : undefined;
  if (deletes) return "d";
  return isForward && !isTag(ref) ? undefined : "p";
}
