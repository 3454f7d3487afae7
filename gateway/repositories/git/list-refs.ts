/** Lists refs as git does (gitprotocol-v2(5), "ls-refs"), if the manifest alone is enough to do so. */
import type { Manifest } from "../cache/manifest-reader.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

/**
 * Name prefixes in one `ls-refs` request that is answered without a process. A request with more prefixes is passed
 * to git.
 */
export const LISTED_PREFIXES_MAX = 1_000;

interface Listing {
  peel: boolean;
  symrefs: boolean;
  unborn: boolean;
  prefixes: string[];
}

/**
 * Returns the response to `ls-refs`, or undefined if git must answer: another command, unknown arguments, too many
 * prefixes, targets of tags, or names outside ASCII.
 */
export function listRefs({ refs, head }: Manifest, question: Buffer): Buffer | undefined {
  const listing = listingIn(question);
  if (!listing) return undefined;
  const isAsked = beginsWithAny(listing.prefixes);
  const names = [...refs.keys()].filter(isAsked);
  // Only git knows the targets of tags. Git orders names by bytes, which `sort` does only for ASCII names.
  if (listing.peel && names.some((name) => !name.startsWith("refs/heads/"))) return undefined;
  if (names.some((name) => !/^[\x21-\x7e]+$/.test(name))) return undefined;
  const lines = names.sort().map((name) => `${refs.get(name)} ${name}\n`);
  if (isAsked("HEAD")) {
    const id = refs.get(head);
    const target = listing.symrefs ? ` symref-target:${head}` : "";
    if (id !== undefined) lines.unshift(`${id} HEAD${target}\n`);
    else if (listing.unborn && listing.symrefs) lines.unshift(`unborn HEAD${target}\n`);
  }
  return Buffer.concat([...lines.map((line) => pktLine(line)), FLUSH]);
}

/** Returns a test for names with one of the prefixes. Without prefixes every name passes. */
function beginsWithAny(prefixes: readonly string[]): (name: string) => boolean {
  if (prefixes.length === 0) return () => true;
  const apart: string[] = [];
  for (const prefix of [...prefixes].sort()) {
    const last = apart.at(-1);
    if (last === undefined || !prefix.startsWith(last)) apart.push(prefix);
  }
  // No prefix in `apart` begins with another one. So of the prefixes that sort before a name, only the last can be
  // the name's beginning.
  return (name) => {
    let [low, high] = [0, apart.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((apart[middle] ?? "") <= name) low = middle + 1;
      else high = middle;
    }
    const before = apart[low - 1];
    return before !== undefined && name.startsWith(before);
  };
}

const DELIMITER = "0001";
const LENGTH_CHARS = 4;

function listingIn(question: Buffer): Listing | undefined {
  const lines = linesOf(question);
  const middle = lines?.indexOf(DELIMITER) ?? -1;
  if (!lines || middle < 0 || lines[0] !== "command=ls-refs") return undefined;
  const isKnown = (line: string) =>
    /^agent=/.test(line) || line === "object-format=sha1" || /^session-id=/.test(line);
  if (!lines.slice(1, middle).every(isKnown)) return undefined;
  const listing: Listing = { peel: false, symrefs: false, unborn: false, prefixes: [] };
  for (const line of lines.slice(middle + 1)) {
    if (line === "peel" || line === "symrefs" || line === "unborn") listing[line] = true;
    else if (line.startsWith("ref-prefix "))
      listing.prefixes.push(line.slice("ref-prefix ".length));
    else return undefined;
  }
  return listing.prefixes.length <= LISTED_PREFIXES_MAX ? listing : undefined;
}

/** Returns the lines of a request without their newlines, or undefined if the request is malformed. */
function linesOf(question: Buffer): string[] | undefined {
  const text = question.toString("latin1");
  const lines: string[] = [];
  for (let at = 0; at < text.length; ) {
    const digits = text.slice(at, at + LENGTH_CHARS);
    if (digits === "0000") return at + LENGTH_CHARS === text.length ? lines : undefined;
    if (!/^[0-9a-f]{4}$/.test(digits)) return undefined;
    const length = digits === DELIMITER ? LENGTH_CHARS : Number.parseInt(digits, 16);
    if (length < LENGTH_CHARS || at + length > text.length) return undefined;
    const line = text.slice(at + LENGTH_CHARS, at + length).replace(/\n$/, "");
    lines.push(digits === DELIMITER ? DELIMITER : line);
    at += length;
  }
  return undefined;
}
