/** Chooses the refs of an origin that an import fetches, and describes those that it cannot store. */
import { ActorError } from "../../../schemas/errors.ts";
import { refNameFault } from "../../../schemas/repositories/git-names.ts";
import { REFS_MAX } from "../../../schemas/repositories/limits.ts";
import { commandsBytes } from "../../../schemas/repositories/repo.ts";
import type { Origin } from "./import-origin.ts";

/**
 * Limits for the ref names in the report of an import: their number, the characters of each, and their bytes as JSON.
 * The whole text has at most 1,000 bytes as JSON, because a page of a listing repeats it for each repository.
 */
const NAMES_SHOWN_MAX = 20;
const NAME_CHARS_SHOWN_MAX = 38;
const NAMES_SHOWN_BYTES_MAX = 900;

interface WantedRefs {
  /** Object ids by ref name. */
  wanted: Map<string, string>;
  /** The refs whose names are not valid in this server. */
  invalid: string[];
}

/** Returns the requested branch, or all branches, tags and notes. Other refs are useful only to the origin's host. */
export function wantedRefs({ refs }: Pick<Origin, "refs">, branch: string | null): WantedRefs {
  if (branch !== null) {
    const ref = `refs/heads/${branch}`;
    const value = refs.get(ref);
    if (value === undefined) {
      throw new ActorError("not_found", `Cannot import: there is no branch "${branch}"`);
    }
    return { wanted: new Map([[ref, value]]), invalid: [] };
  }
  const useful = [...refs].filter(([ref]) => /^refs\/(heads|tags|notes)\//.test(ref));
  const isValid = ([ref]: [string, string]) => refNameFault(ref) === undefined;
  const wanted = new Map(useful.filter(isValid));
  if (wanted.size > REFS_MAX) {
    const text = `Cannot import: it has ${wanted.size} refs, more than ${REFS_MAX}`;
    throw new ActorError("limit_reached", text);
  }
  return { wanted, invalid: useful.filter((ref) => !isValid(ref)).map(([ref]) => ref) };
}

/** Returns a text that names the refs that were not imported because of their names, or null if there are none. */
export function describeInvalid(invalid: readonly string[]): string | null {
  if (invalid.length === 0) return null;
  const names = invalid.slice(0, NAMES_SHOWN_MAX).map(shortened);
  while (commandsBytes(names) > NAMES_SHOWN_BYTES_MAX) names.pop();
  const more = invalid.length - names.length;
  const count = `${invalid.length} ${invalid.length === 1 ? "ref was" : "refs were"}`;
  const list = `${names.join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
  return `${count} not imported, because names such as these are not valid here: ${list}`;
}

/** Returns the start of a name. Control characters of the origin, and halves of a pair, are replaced. */
function shortened(ref: string): string {
  const start = ref.slice(0, NAME_CHARS_SHOWN_MAX).replace(/\p{C}/gu, "\ufffd");
  return ref.length > NAME_CHARS_SHOWN_MAX ? `${start}…` : start;
}
