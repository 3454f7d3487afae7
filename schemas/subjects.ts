/**
 * Builds and parses the names of subjects, streams and keys on the bus. Only this file and split-streams.ts do this.
 */
import { BLOB_NAME_CHARS_MAX, SHARDS } from "./limits.ts";
import { RENDER_JOBS_STORE_BYTES_MAX } from "./rendering/limits.ts";

export const STREAMS = {
  mail: "MAIL",
  tasks: "TASKS",
  dead: "DEAD",
  crawl: "CRAWL",
  packs: "PACKS",
  cache: "CACHE",
  apps: "APPS",
  agents: "AGENTS",
  appLogs: "APP_LOGS",
  traces: "TRACES",
  kept: "KEPT",
  renderJobs: "OBJ_render-jobs",
} as const;

/** Streams that have only one copy on every bus, so their content may be lost at any time. */
export const LOSABLE_STREAMS: ReadonlySet<string> = new Set([STREAMS.cache, STREAMS.traces]);

/**
 * The object store of rendering jobs: its name for `nats object`, its stream, and the limit of the stream's bytes.
 */
export const RENDER_JOBS_STORE = {
  bucket: "render-jobs",
  stream: STREAMS.renderJobs,
  bytesMax: RENDER_JOBS_STORE_BYTES_MAX,
} as const;
/** The streams of blobs, by the first token of a blob's name. */
export const BLOB_STREAMS = {
  crawl: STREAMS.crawl,
  git: STREAMS.packs,
  app: STREAMS.apps,
} as const;

/** Returns the name, or the token of subjects, that belongs to one stream of a store with several (split-streams.ts). */
export const splitName = (name: string, index: number) => (index === 0 ? name : `${name}-${index}`);
/** Returns the number of the stream that has the messages of an account. */
export const ofAccount = (account: string, streams: number) => fnv1a32(account) % streams;

/**
 * Returns the first tokens of the subjects on which a connection receives answers and the reports of its tasks. Each
 * role has its own tokens, so that the bus can prevent a user from reading the answers for other roles.
 */
export const inboxesOf = (role: string | undefined) =>
  role === undefined
    ? { answers: "_INBOX", tasks: "_INBOX" }
    : { answers: `_INBOX_${role}`, tasks: `_TASK_${role}` };
export type Inboxes = ReturnType<typeof inboxesOf>;

const KV_PREFIX = "$KV.";
const utf8 = new TextEncoder();
// `ignoreBOM` keeps a byte order mark at the start of a key.
const utf8Text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const READABLE_KEY = /^[\w-]+(\.[\w-]+)*$/;
/** Matches ASCII keys in which every dot separates two tokens. Most names of rows are such keys. */
const PLAIN_KEY = /^[!-\-/-~]+(\.[!-\-/-~]+)*$/;
/**
 * Matches encoded ASCII without dots in which exactly the necessary characters are escaped. This is a fast check for
 * the names of rows, of which up to 100,000 are decoded together.
 */
const PLAINLY_ESCAPED = /^(?:[\w-]|=(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-F]))+$/;
const BLOB_NAME = /^(\w+)(\.[\w-]+)+$/;

/** Returns the FNV-1a hash of the UTF-8 bytes, with 32 bits. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return fnv1a32OfBytes(utf8.encode(text));
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  return hash >>> 0;
}

function fnv1a32OfBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/**
 * Encodes a key for subjects and KV keys. Dots that separate tokens stay, and so do letters, digits, `_` and `-`.
 * Every other byte of the UTF-8 form becomes `=XX`, because a KV key may contain only `[-/=.\w]`. A leading, trailing
 * or doubled dot is also encoded, because a subject has no empty tokens. Throws if the key is not well-formed
 * Unicode.
 */
export function encodeKey(key: string): string {
  if (READABLE_KEY.test(key)) return key;
  if (PLAIN_KEY.test(key)) return key.replaceAll(/[^\w.-]/g, escaped);
  // Refuse single surrogates: UTF-8 encodes all of them as the same replacement character, so different keys would
  // become equal.
  if (!key.isWellFormed()) throw new Error("Cannot encode key: it is not well-formed Unicode");
  let encoded = "";
  let afterDot = true;
  const bytes = utf8.encode(key);
  bytes.forEach((byte, index) => {
    const character = String.fromCharCode(byte);
    const separator = character === "." && !afterDot && index < bytes.length - 1;
    if (separator || /[A-Za-z0-9_-]/.test(character)) encoded += character;
    else encoded += escaped(character);
    afterDot = separator;
  });
  return encoded;
}

/** The characters U+0000 to U+00FF. */
const ESCAPES = Array.from(
  { length: 0x100 },
  (_, code) => `=${code.toString(16).toUpperCase().padStart(2, "0")}`,
);
const escaped = (character: string) => ESCAPES[character.charCodeAt(0)] ?? "";

/**
 * Returns the key that `encodeKey` encoded. Throws if the text is not the exact result of `encodeKey`, so that each
 * key has only one address.
 */
export function decodeKey(encoded: string): string {
  if (READABLE_KEY.test(encoded)) return encoded;
  if (PLAINLY_ESCAPED.test(encoded)) {
    return encoded.replaceAll(/=(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  const bytes: number[] = [];
  for (let i = 0; i < encoded.length; i++) {
    if (encoded[i] !== "=") bytes.push(encoded.charCodeAt(i));
    else {
      bytes.push(Number.parseInt(encoded.slice(i + 1, i + 3), 16));
      i += 2;
    }
  }
  const key = readUtf8(Uint8Array.from(bytes));
  if (key === undefined || key === "" || encodeKey(key) !== encoded) {
    throw new Error(`Cannot decode key: "${encoded}"`);
  }
  return key;
}

function readUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8Text.decode(bytes);
  } catch {
    return undefined; // Not UTF-8.
  }
}

/** Returns an actor's address, which is the end of its subjects: `<kind>.<encoded key>`. */
export const addressOf = (kind: string, key: string) => `${kind}.${encodeKey(key)}`;

/**
 * Returns the shard of an address if there are `shards` shards. Processes call `Bus.shardOf`, which knows the number
 * of shards of their data.
 */
export const shardOf = (address: string, shards = SHARDS) => fnv1a32(`actor.${address}`) % shards;

/**
 * The first token of the subject on which operators call an actor. The actor's address follows, so operators need not
 * know the shard.
 */
export const OPERATOR_CALLS = "actor";

export const callSubject = (shard: number | "*", address: string) => `shard.${shard}.${address}`;
/** The first tokens of the subjects of all calls to actors of a shard. */
export const shardSubjects = (shard: number) => `shard.${shard}`;

/** The subject on which a host answers while it is connected, so that others can check that it is present. */
export const presenceSubject = (host: string) => `present.${host}`;

/** The subject on which a host announces that it has opened a shard. */
export const openedSubject = (shard: number | "*") => `opened.${shard}`;

/** The prefix of the subjects on which one gateway answers hosts that request a permit to run an app's request. */
export const begunSubject = (gateway: string) => `begun.${gateway}`;
/** The core subject (without JetStream) of the live updates of an actor. */
export const liveSubject = (address: string) => `live.${address}`;

/** The subject of a lane. The kind and the lane determine the number of the stream (split-streams.ts). */
export const taskSubject = (kind: string, lane: string, stream = 0) =>
  `${splitName("task", stream)}.${kind}.${lane}`;
export const taskConsumer = (kind: string, lane: string) => `${kind}-${lane}`;
/** The subject of the queue of one key, in a lane that serves its keys alternately. */
export const turnSubject = (kind: string, lane: string, key: string, stream = 0) =>
  `${taskSubject(kind, lane, stream)}.${encodeKey(key)}`;
export const turnSubjects = (kind: string, lane: string, stream = 0) =>
  `${taskSubject(kind, lane, stream)}.>`;
/** Returns the key of the subject of a queue. */
export const keyOfTurn = (subject: string) => decodeKey(subject.split(".").slice(3).join("."));
/**
 * Returns the name of the consumer of one key's queue. Such a name must not contain dots and has at most 255
 * characters, so it contains the `digest` instead of the key.
 */
export const turnConsumer = (kind: string, lane: string, digest: string) =>
  `${taskConsumer(kind, lane)}-${digest}`;
/** The core subject on which workers are notified of keys whose queue has a new task. */
export const queuedSubject = (kind: string, lane: string) => `queued.${kind}.${lane}`;
/** The core subject on which a running task is notified that no caller waits for it any more. */
export const cancelSubject = (taskId: string) => `cancel.${taskId}`;
export const deadSubject = (address: string) => `dead.${address}`;
export const deadAddress = (subject: string) => subject.slice("dead.".length);

/** The subject of the lines that an app has printed. `key` is the `appKey`. */
export const appLogSubject = (key: string) => `applog.${encodeKey(key)}`;
/** The subjects of the lines of all apps of an account. */
export const appLogsOf = (accountId: string) => `${appLogSubject(accountId)}.>`;

/**
 * Returns the subject for the steps of a request. Many requests share a subject, because the bus keeps the name of each
 * subject in memory.
 */
export const traceSubject = (requestId: string) => `trace.${fnv1a32(requestId) % TRACE_SUBJECTS}`;
const TRACE_SUBJECTS = 256;

/** The subject of a cached value that one process stores for all processes: see TtlStore. */
export const cacheSubject = (key: string) => `cache.${encodeKey(key)}`;

/**
 * Returns the subjects of one blob. The head contains the last bytes of the blob and its description. The earlier
 * bytes are in chunks, and each writer has its own chunks. No name contains `=`, so the subjects of two blobs never
 * overlap. Throws if the name is invalid.
 */
export function blobSubjects(name: string, packStreams = 1) {
  const family = blobFamilyOf(name);
  const index = family === "git" ? ofAccount(name.split(".", 2)[1] ?? "", packStreams) : 0;
  const path = `${splitName(family, index)}${name.slice(family.length)}`;
  return {
    stream: splitName(BLOB_STREAMS[family], index),
    head: `blob.${path}.=.head`,
    chunk: (writer: string, chunk: number) => `blob.${path}.=.${writer}.${chunk}`,
    writtenBy: (writer: string) => `blob.${path}.=.${writer}.*`,
    all: `blob.${path}.=.>`,
    /** The subjects of this blob, and of all blobs whose names begin with this name and a dot. */
    beneath: `blob.${path}.>`,
  };
}
/** The streams of all blobs of one family, with their subjects. */
export const blobFamily = (family: keyof typeof BLOB_STREAMS, packStreams = 1) =>
  Array.from({ length: family === "git" ? packStreams : 1 }, (_, index) => ({
    stream: splitName(BLOB_STREAMS[family], index),
    all: `blob.${splitName(family, index)}.>`,
  }));
/** The heads of all blobs whose names match; `*` stands for one token. */
export const blobHeads = (names: string) => `blob.${names}.=.head`;
/** Returns the subjects of an object store, as ADR-20 of NATS defines them. */
export const objectSubjects = (bucket: string) => ({
  all: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
  /** The subject of the chunks of one object, in order. `nuid` is the name that the writer gave to the chunks. */
  pieces: (nuid: string) => `$O.${bucket}.C.${nuid}`,
  /**
   * The subject of the size and digest of an object. It contains the object's ASCII name in base64 for URLs, with
   * padding.
   */
  about: (name: string) => {
    const text = Buffer.from(name).toString("base64");
    return `$O.${bucket}.M.${text.replaceAll("+", "-").replaceAll("/", "_")}`;
  },
});
/** Returns the name of the blob to which a subject belongs. */
export const blobNameOf = (subject: string) =>
  subject.slice("blob.".length, subject.indexOf(".=.")).replace(/^git-\d+\./, "git.");
export type BlobSubjects = ReturnType<typeof blobSubjects>;

function blobFamilyOf(name: string): keyof typeof BLOB_STREAMS {
  const first = BLOB_NAME.exec(name)?.[1] ?? "";
  if (name.length > BLOB_NAME_CHARS_MAX || !isBlobFamily(first)) {
    const families = Object.keys(BLOB_STREAMS).join(" or ");
    const text = `expected ${families} and more tokens of letters, digits, _ and -`;
    throw new Error(`Cannot name blob "${name.slice(0, BLOB_NAME_CHARS_MAX)}": ${text}`);
  }
  return first;
}

const isBlobFamily = (token: string): token is keyof typeof BLOB_STREAMS =>
  Object.hasOwn(BLOB_STREAMS, token);

/** Returns the kind and key of the subject `<prefix>.<shard>.<kind>.<key…>`. */
export function readAddress(subject: string): { kind: string; key: string } {
  const kindAt = subject.indexOf(".", subject.indexOf(".") + 1) + 1;
  const keyAt = subject.indexOf(".", kindAt) + 1;
  if (kindAt === 0 || keyAt === 0) throw new Error(`Cannot read address: "${subject}"`);
  return { kind: subject.slice(kindAt, keyAt - 1), key: decodeKey(subject.slice(keyAt)) };
}

/** Returns the keys of one state bucket, as subjects of its stream. */
export function stateSubjects(bucket: string) {
  const prefix = `${KV_PREFIX}${bucket}.`;
  return {
    bucket,
    stream: `KV_${bucket}`,
    all: `${prefix}>`,
    value: (address: string) => `${prefix}${address}`,
    // The token `=` separates the key from the row. No encoded key contains this token, so the rows of different keys
    // never overlap.
    row: (address: string, row: string) => `${prefix}${address}.=.${encodeKey(row)}`,
    rows: (address: string) => `${prefix}${address}.=.>`,
    /**
     * The subjects of the values and rows of all keys that begin with the tokens of this address and have more
     * tokens.
     */
    beneath: (address: string) => `${prefix}${address}.>`,
    /** Returns the key to which a value or row belongs. */
    keyOf: (kind: string, subject: string) =>
      decodeKey((subject.split(".=.")[0] ?? "").slice(prefix.length + kind.length + 1)),
    /** The subjects of the rows with this name, for all keys of a kind that consist of one token. */
    rowsOfAll: (kind: string, row: string) => `${prefix}${kind}.*.=.${row}`,
    /**
     * The subject of a marker among the rows. It differs from every row, because `=` alone is never an encoded name.
     */
    rowMark: (address: string) => `${prefix}${address}.=.=`,
    rowName: (subject: string) => decodeKey(subject.slice(subject.indexOf(".=.") + 3)),
    epoch: (shard: number) => `${prefix}epoch.${shard}`,
    outbox: (shard: number) => `${prefix}outbox.${shard}`,
    lease: (host: string) => `${prefix}lease.${host}`,
    leases: `${prefix}lease.*`,
    member: (host: string) => `${prefix}member.${host}`,
    members: `${prefix}member.*`,
    epochs: `${prefix}epoch.*`,
    /** The stream of the journals of this bucket. Each host has its own journal, which contains its commits. */
    journalStream: `JOURNAL_${bucket}`,
    journal: (host: string) => `journal.${bucket}.${host}`,
    journals: `journal.${bucket}.*`,
    /** The subject of the newest checkpoint of one host. */
    checkpoint: (host: string) => `${prefix}checkpoint.${host}`,
    /**
     * The subjects of journals in the format of the first release: one commit in each slot, and a note that records
     * which commits are already written to their keys.
     */
    firstJournalNote: (host: string) => `${prefix}journal.${host}.note`,
    firstJournal: (host: string) => `${prefix}journal.${host}.*`,
    firstJournals: `${prefix}journal.*.*`,
    /** Converts a subject to its name in the bucket; `ofBucketKey` converts it back. */
    bucketKey: (subject: string) => subject.slice(prefix.length),
    ofBucketKey: (key: string) => `${prefix}${key}`,
    lastToken: (subject: string) => subject.slice(subject.lastIndexOf(".") + 1),
    remind: (shard: number, address: string, message: string) =>
      `${prefix}remind.${shard}.${address}.=.${message}`,
    /** The subjects of all stored reminders of a kind, in all shards. */
    remindersOf: (kind: string) => `${prefix}remind.*.${kind}.>`,
    /** Returns the subject on which a stored reminder fires; undefined if the subject is not that of a reminder. */
    firedFor: (subject: string) =>
      subject.startsWith(`${prefix}remind.`)
        ? `${prefix}fired.${subject.slice(`${prefix}remind.`.length)}`
        : undefined,
    firedOf: (shard: number) => `${prefix}fired.${shard}.>`,
    /** Returns the shard, kind, key and message of a stored or a fired reminder. */
    readReminder(subject: string) {
      const [address = "", message = ""] = subject.slice(prefix.length).split(".=.");
      return { shard: Number(address.split(".", 2)[1]), ...readAddress(address), message };
    },
  };
}
export type StateSubjects = ReturnType<typeof stateSubjects>;

export const stateBucket = (index: number) => `state-${index}`;
/** Returns whether the stream stores states of actors. */
export const isState = (stream: string) => stream.startsWith("KV_state-");
/**
 * Returns whether the subject of a state stream changes without a commit: leases, members, reminders that the bus
 * fires, and marks of backups.
 */
export const changesNoActor = (subject: string) =>
  /^\$KV\.state-\d+\.(lease|member|fired|backup)\./.test(subject);

/** The subject of the stored data's format version. It is in the first state stream. */
export const DATA_FORMAT_SUBJECT = `${KV_PREFIX}${stateBucket(0)}.format`;
/** The subject that names the process which is now upgrading the stored data to a newer format. */
export const UPGRADE_SUBJECT = `${KV_PREFIX}${stateBucket(0)}.upgrade`;
/**
 * The subject of the newest backup of a series of backups (admin backup). It is in the first state stream, and no actor
 * reads it. `*` stands for all series.
 */
export const backupMarkSubject = (series: string) =>
  `${KV_PREFIX}${stateBucket(0)}.backup.${series}`;

/**
 * The core subject on which a backup requests all processes to start no writes for some milliseconds; 0 ends the
 * pause.
 */
export const HOLD_SUBJECT = "hold.writes";
