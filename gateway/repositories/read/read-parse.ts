/** Parses the commits and directories of git (gitformat-commit, git-mktree). */
import { setImmediate as others } from "node:timers/promises";

export interface Person {
  name: string;
  email: string;
}

export interface Commit {
  hash: string;
  treeHash: string;
  /** The message without its last newline. */
  message: string;
  author: Person;
  committer: Person;
  parents: string[];
  /** Seconds since 1970. */
  authoredAt: number;
  committedAt: number;
}

const ENTRY_TYPES = {
  "100644": "blob",
  "100755": "exec",
  "120000": "symlink",
  "160000": "gitlink",
  "40000": "tree",
} as const;
type EntryMode = keyof typeof ENTRY_TYPES;

export interface TreeEntry {
  name: string;
  mode: EntryMode;
  hash: string;
  type: (typeof ENTRY_TYPES)[EntryMode];
}

/** An entry of a directory. Its name has the bytes that git stores, which need not be UTF-8. */
export interface RawEntry {
  name: Buffer;
  mode: EntryMode;
  hash: string;
}

/** An entry and its place in the content of its tree. */
export interface PlacedEntry extends RawEntry {
  from: number;
  to: number;
}

/** Entries that are read before other work of the process runs. They take about ten milliseconds. */
const ENTRIES_AT_ONCE = 20_000;
const ID_BYTES = 20;
/** The fields of a commit that are read. A commit may have any number of other fields, which are ignored. */
const FIELD = /^(tree|parent|author|committer) (.*)$/s;
const ENCODING = /(?:^|\n)encoding (\S{1,40})(?:\n|$)/;
/** Bytes of a commit whose text is decoded. Decoding takes up to 50 ms in the slowest encodings. */
const DECODED_BYTES_MAX = 1024 * 1024;

export function parseCommit(hash: string, content: Buffer): Commit {
  const text = textOf(content);
  const end = text.indexOf("\n\n");
  const head = end < 0 ? text : text.slice(0, end);
  const message = end < 0 ? "" : text.slice(end + 2);
  const fields = new Map<string, string>();
  const parents: string[] = [];
  for (const line of head.split("\n")) {
    // A line that begins with a blank continues the field before it, which is a signature.
    const [, name, value = ""] = FIELD.exec(line) ?? [];
    if (name === "parent") parents.push(value);
    else if (name !== undefined && !fields.has(name)) fields.set(name, value);
  }
  const [author, authoredAt] = personIn(fields.get("author"));
  const [committer, committedAt] = personIn(fields.get("committer"));
  return {
    hash,
    treeHash: fields.get("tree") ?? "",
    message: message.endsWith("\n") ? message.slice(0, -1) : message,
    author,
    committer,
    parents,
    authoredAt,
    committedAt,
  };
}

/**
 * Returns the text of a commit. Old histories have texts in other encodings, which a field of the commit names.
 * TextDecoder knows the encodings of the Encoding Standard, which are fewer than those that git knows. It takes ISO-8859-1
 * for windows-1252. The text counts as UTF-8 if its encoding is not known, or if it is too large.
 */
function textOf(content: Buffer): string {
  if (content.length > DECODED_BYTES_MAX) return content.toString("utf8");
  const end = content.indexOf("\n\n");
  const head = content.toString("latin1", 0, end < 0 ? content.length : end);
  const encoding = ENCODING.exec(head)?.[1];
  const text = encoding === undefined ? undefined : decoded(content, encoding);
  // Encodings in which the fields of the commit are unreadable cannot be those of the text.
  return text?.startsWith("tree ") ? text : content.toString("utf8");
}

function decoded(content: Buffer, encoding: string): string | undefined {
  // Git knows this name too, as it occurs in e-mails. TextDecoder does not know it.
  const label = /^latin-1$/i.test(encoding) ? "ISO-8859-1" : encoding;
  try {
    return new TextDecoder(label).decode(content);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Parses `Name <address> seconds zone`. In old histories some of these parts are missing. */
function personIn(text = ""): [Person, number] {
  const [, name = "", email = "", seconds = "0"] =
    /^([^<]*)<([^>]*)>(?: *(-?\d+))?/.exec(text) ?? [];
  return [{ name: name.trim(), email }, Number(seconds)];
}

/**
 * Calls `visit` for each entry of a tree in its order. A tree may have hundreds of thousands of entries, so other work
 * of the process runs in between.
 */
export async function walkTree(
  content: Buffer,
  visit: (entry: PlacedEntry) => void,
): Promise<void> {
  let count = 0;
  for (const entry of entriesOf(content)) {
    visit(entry);
    count += 1;
    if (count % ENTRIES_AT_ONCE === 0) await others();
  }
}

function* entriesOf(content: Buffer): Generator<PlacedEntry, void, undefined> {
  for (let at = 0; at < content.length; ) {
    const blank = content.indexOf(0x20, at);
    const zero = content.indexOf(0, blank);
    if (blank < 0 || zero < 0) throw new Error("Cannot read tree: an entry is cut off");
    const mode = knownMode(content.toString("latin1", at, blank));
    const name = content.subarray(blank + 1, zero);
    const to = zero + 1 + ID_BYTES;
    const hash = content.toString("hex", zero + 1, to);
    yield { name, mode, hash, from: at, to };
    at = to;
  }
}

/** Returns the entries of a tree in its order. */
export async function parseTree(content: Buffer): Promise<TreeEntry[]> {
  const entries: TreeEntry[] = [];
  await walkTree(content, ({ name, mode, hash }) => {
    entries.push({ name: name.toString("utf8"), mode, hash, type: ENTRY_TYPES[mode] });
  });
  return entries;
}

/**
 * Returns the mode that git takes an entry for. Git reads the type and, of a file, whether its owner may execute it.
 * Old histories have other bits too, or a zero before the mode of a directory.
 */
function knownMode(mode: string): EntryMode {
  if (Object.hasOwn(ENTRY_TYPES, mode)) return mode as EntryMode;
  const bits = Number.parseInt(mode, 8);
  switch (bits & 0o170000) {
    case 0o100000:
      return (bits & 0o100) === 0 ? "100644" : "100755";
    case 0o120000:
      return "120000";
    case 0o040000:
      return "40000";
    default:
      return "160000";
  }
}
