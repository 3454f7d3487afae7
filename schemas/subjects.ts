/** The names of subjects, streams and keys on the bus. They are built and read here and nowhere else. */
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

/** Streams with one copy on every bus. Their content may be lost at any time. */
export const LOSABLE_STREAMS: ReadonlySet<string> = new Set([STREAMS.cache, STREAMS.traces]);

/** The object store of rendering jobs: the name that `nats object` knows, its stream, and the bytes of that. */
export const RENDER_JOBS_STORE = {
  bucket: "render-jobs",
  stream: STREAMS.renderJobs,
  bytesMax: RENDER_JOBS_STORE_BYTES_MAX,
} as const;
/** The streams of blobs, by the first token of their names. */
export const BLOB_STREAMS = {
  crawl: STREAMS.crawl,
  git: STREAMS.packs,
  app: STREAMS.apps,
} as const;

/**
 * First tokens of the subjects on which a connection receives answers and reports of its tasks. Each role has its own
 * tokens, so that the bus can deny a user the answers of other roles.
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
/** ASCII whose dots all separate tokens: names of rows, as a rule. */
const PLAIN_KEY = /^[!-\-/-~]+(\.[!-\-/-~]+)*$/;
/**
 * ASCII without dots in which exactly the characters are escaped that have to be: the names of rows, 100,000 at a time.
 */
const PLAINLY_ESCAPED = /^(?:[\w-]|=(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-F]))+$/;
const BLOB_NAME = /^(\w+)(\.[\w-]+)+$/;

/** FNV-1a, 32 bits, over the UTF-8 bytes. */
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
 * A key as it stands in subjects and KV keys. Dots separate tokens and stay; so do letters, digits, `_` and `-`.
 * Every other byte of the UTF-8 form becomes `=XX`, since a KV key takes only `[-/=.\w]`; so does a leading, trailing
 * or doubled dot, since no subject has an empty token. Throws where the key is not well-formed Unicode.
 */
export function encodeKey(key: string): string {
  if (READABLE_KEY.test(key)) return key;
  if (PLAIN_KEY.test(key)) return key.replaceAll(/[^\w.-]/g, escaped);
  // UTF-8 has one and the same replacement for every half of a surrogate pair.
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

/** The key that `encodeKey` encoded. Throws on other text, so that one key has one address. */
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

/** An actor's address as one subject tail: `<kind>.<encoded key>`. */
export const addressOf = (kind: string, key: string) => `${kind}.${encodeKey(key)}`;

/** The shard of an address among this many. Processes call `Bus.shardOf`, which has the number of their data. */
export const shardOf = (address: string, shards = SHARDS) => fnv1a32(`actor.${address}`) % shards;

/** Operators call an actor on this subject and its address, whatever its shard is. */
export const OPERATOR_CALLS = "actor";

export const callSubject = (shard: number | "*", address: string) => `shard.${shard}.${address}`;
/** The first tokens of the subjects of all calls to a shard. */
export const shardSubjects = (shard: number) => `shard.${shard}`;

/** The subject on which a host answers while it is connected. */
export const presenceSubject = (host: string) => `present.${host}`;

/** The subject on which a host announces that it has opened a shard. */
export const openedSubject = (shard: number | "*") => `opened.${shard}`;

export const mailSubject = (shard: number, address: string) => `mail.${shard}.${address}`;
export const mailSubjects = (shard: number) => `mail.${shard}.>`;
/**
 * The position up to which a shard's outbox is published. It is in the same stream as mail, so that one batch holds
 * both.
 */
export const sentSubject = (shard: number | "*") => `sent.${shard}`;

/** Below this subject a gateway permits runs of requests to apps. */
export const begunSubject = (gateway: string) => `begun.${gateway}`;
/** Core subject of the live updates of an actor. */
export const liveSubject = (address: string) => `live.${address}`;

export const taskSubject = (kind: string, lane: string) => `task.${kind}.${lane}`;
export const taskConsumer = (kind: string, lane: string) => `${kind}-${lane}`;
/** The queue of one key, in a lane that serves its keys in turn. */
export const turnSubject = (kind: string, lane: string, key: string) =>
  `${taskSubject(kind, lane)}.${encodeKey(key)}`;
export const turnSubjects = (kind: string, lane: string) => `${taskSubject(kind, lane)}.>`;
/** Returns the subject of a queued task. */
export const queueSubject = (task: {
  kind: string;
  lane: string;
  key: string;
  inTurns: boolean;
}) =>
  task.inTurns ? turnSubject(task.kind, task.lane, task.key) : taskSubject(task.kind, task.lane);
export const keyOfTurn = (kind: string, lane: string, subject: string) =>
  decodeKey(subject.slice(taskSubject(kind, lane).length + 1));
/** A consumer's name has no dots, and is at most 255 characters long: `digest` stands for the key. */
export const turnConsumer = (kind: string, lane: string, digest: string) =>
  `${taskConsumer(kind, lane)}-${digest}`;
/** Core subject on which workers receive the keys whose queue has a new task. */
export const queuedSubject = (kind: string, lane: string) => `queued.${kind}.${lane}`;
/** Core subject on which a running task is notified that nobody waits for it any more. */
export const cancelSubject = (taskId: string) => `cancel.${taskId}`;
export const deadSubject = (address: string) => `dead.${address}`;
export const deadAddress = (subject: string) => subject.slice("dead.".length);

/** The changes of one agent's database in order, from a whole image on. */
export const agentLogSubject = (key: string) => `agentlog.${encodeKey(key)}`;
/** The logs of all agents of an app, by `appKey`. */
export const agentLogSubjects = (app: string) => `${agentLogSubject(app)}.>`;
/** The lines that an app has printed, by `appKey`. */
export const appLogSubject = (key: string) => `applog.${encodeKey(key)}`;

/**
 * Returns the subject for the steps of a request. Many requests share a subject, because the bus keeps the name of each
 * subject in memory.
 */
export const traceSubject = (requestId: string) => `trace.${fnv1a32(requestId) % TRACE_SUBJECTS}`;
const TRACE_SUBJECTS = 256;

/** Values that a process keeps for all: see TtlStore. */
export const cacheSubject = (key: string) => `cache.${encodeKey(key)}`;

/**
 * The subjects of one blob. Its head holds its last bytes and describes it; the bytes before are in chunks of one
 * writer each. No name holds `=`, so the subjects of two blobs never mix. Throws on an invalid name.
 */
export function blobSubjects(name: string) {
  const stream = blobStream(name);
  return {
    stream,
    head: `blob.${name}.=.head`,
    chunk: (writer: string, index: number) => `blob.${name}.=.${writer}.${index}`,
    writtenBy: (writer: string) => `blob.${name}.=.${writer}.*`,
    all: `blob.${name}.=.>`,
    /** This blob, and all blobs whose names begin with this name and a dot. */
    beneath: `blob.${name}.>`,
  };
}
/** All blobs of a family. */
export const blobFamily = (family: keyof typeof BLOB_STREAMS) => ({
  stream: BLOB_STREAMS[family],
  all: `blob.${family}.>`,
});
/** The heads of all blobs whose names match; `*` stands for one token. */
export const blobHeads = (names: string) => `blob.${names}.=.head`;
/** The subjects of an object store, as ADR-20 of NATS has them. */
export const objectSubjects = (bucket: string) => ({
  all: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
  /** The pieces of one object, in order. `nuid` is the name that its writer gave them. */
  pieces: (nuid: string) => `$O.${bucket}.C.${nuid}`,
  /** Size and digest of an object. Its name, in ASCII, is there in base64 for URLs with padding. */
  about: (name: string) => {
    const text = Buffer.from(name).toString("base64");
    return `$O.${bucket}.M.${text.replaceAll("+", "-").replaceAll("/", "_")}`;
  },
});
/** The name of the blob that a subject belongs to. */
export const blobNameOf = (subject: string) =>
  subject.slice("blob.".length, subject.indexOf(".=."));
export type BlobSubjects = ReturnType<typeof blobSubjects>;

function blobStream(name: string): string {
  const first = BLOB_NAME.exec(name)?.[1] ?? "";
  if (name.length > BLOB_NAME_CHARS_MAX || !isBlobFamily(first)) {
    const families = Object.keys(BLOB_STREAMS).join(" or ");
    const text = `expected ${families} and more tokens of letters, digits, _ and -`;
    throw new Error(`Cannot name blob "${name.slice(0, BLOB_NAME_CHARS_MAX)}": ${text}`);
  }
  return BLOB_STREAMS[first];
}

const isBlobFamily = (token: string): token is keyof typeof BLOB_STREAMS =>
  Object.hasOwn(BLOB_STREAMS, token);

/** Kind and key of `<prefix>.<shard>.<kind>.<key…>`. */
export function readAddress(subject: string): { kind: string; key: string } {
  const kindAt = subject.indexOf(".", subject.indexOf(".") + 1) + 1;
  const keyAt = subject.indexOf(".", kindAt) + 1;
  if (kindAt === 0 || keyAt === 0) throw new Error(`Cannot read address: "${subject}"`);
  return { kind: subject.slice(kindAt, keyAt - 1), key: decodeKey(subject.slice(keyAt)) };
}

/** Keys of one state bucket, as subjects of its stream. */
export function stateSubjects(bucket: string) {
  const prefix = `${KV_PREFIX}${bucket}.`;
  return {
    bucket,
    stream: `KV_${bucket}`,
    all: `${prefix}>`,
    value: (address: string) => `${prefix}${address}`,
    // `=` alone is no encoded key's token, so rows of one key are never another key's.
    row: (address: string, row: string) => `${prefix}${address}.=.${encodeKey(row)}`,
    rows: (address: string) => `${prefix}${address}.=.>`,
    /** Values and rows of all keys that begin with these tokens. */
    beneath: (address: string) => `${prefix}${address}.>`,
    /** The key that a value or row belongs to. */
    keyOf: (kind: string, subject: string) =>
      decodeKey((subject.split(".=.")[0] ?? "").slice(prefix.length + kind.length + 1)),
    /** The values of all keys of a kind that have one token. */
    rowsOfAll: (kind: string, row: string) => `${prefix}${kind}.*.=.${row}`,
    /** A marker among the rows. It equals no row, because `=` alone is not an encoded name. */
    rowMark: (address: string) => `${prefix}${address}.=.=`,
    rowName: (subject: string) => decodeKey(subject.slice(subject.indexOf(".=.") + 3)),
    epoch: (shard: number) => `${prefix}epoch.${shard}`,
    outbox: (shard: number) => `${prefix}outbox.${shard}`,
    lease: (host: string) => `${prefix}lease.${host}`,
    leases: `${prefix}lease.*`,
    member: (host: string) => `${prefix}member.${host}`,
    members: `${prefix}member.*`,
    epochs: `${prefix}epoch.*`,
    /** The commits of one host, in a stream of their own. */
    journalStream: `JOURNAL_${bucket}`,
    journal: (host: string) => `journal.${bucket}.${host}`,
    journals: `journal.${bucket}.*`,
    /** The newest checkpoint of one host. */
    checkpoint: (host: string) => `${prefix}checkpoint.${host}`,
    /** Journals of the first release: a commit in each slot, and a note that lists the commits in their keys. */
    firstJournalNote: (host: string) => `${prefix}journal.${host}.note`,
    firstJournal: (host: string) => `${prefix}journal.${host}.*`,
    firstJournals: `${prefix}journal.*.*`,
    /** The bucket's name for a subject, and back. */
    bucketKey: (subject: string) => subject.slice(prefix.length),
    ofBucketKey: (key: string) => `${prefix}${key}`,
    lastToken: (subject: string) => subject.slice(subject.lastIndexOf(".") + 1),
    remind: (shard: number, address: string, message: string) =>
      `${prefix}remind.${shard}.${address}.=.${message}`,
    /** The subject on which the reminder of a subject fires; undefined where the subject is no reminder's. */
    firedFor: (subject: string) =>
      subject.startsWith(`${prefix}remind.`)
        ? `${prefix}fired.${subject.slice(`${prefix}remind.`.length)}`
        : undefined,
    firedOf: (shard: number) => `${prefix}fired.${shard}.>`,
    /** Kind, key and message of a fired reminder. */
    readFired(subject: string) {
      const [address = "", message = ""] = subject.slice(prefix.length).split(".=.");
      return { ...readAddress(address), message };
    },
  };
}
export type StateSubjects = ReturnType<typeof stateSubjects>;

export const stateBucket = (index: number) => `state-${index}`;
/** True for the name of a stream that holds states of actors. */
export const isState = (stream: string) => stream.startsWith("KV_state-");
/** True for keys of a state stream that change without a commit: leases, members, and reminders that the bus fires. */
export const changesNoActor = (subject: string) =>
  /^\$KV\.state-\d+\.(lease|member|fired)\./.test(subject);

/** The format of the stored data, in the first state stream. */
export const DATA_FORMAT_SUBJECT = `${KV_PREFIX}${stateBucket(0)}.format`;
/** The process that upgrades the stored data to a newer format now. */
export const UPGRADE_SUBJECT = `${KV_PREFIX}${stateBucket(0)}.upgrade`;

/** Core subject for a backup's request to all processes to start no writes for some milliseconds; 0 ends the pause. */
export const HOLD_SUBJECT = "hold.writes";
