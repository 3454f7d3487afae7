/** The configuration of every stream: its content, its limits, and its behaviour at these limits. */
import {
  DiscardPolicy,
  PersistMode,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { AGENTS_STORE_BYTES_MAX } from "../schemas/apps/limits.ts";
import type { TaskContract } from "../schemas/contract.ts";
import { JOURNAL_MESSAGES_KEPT, LANE_TASKS_MAX } from "../schemas/limits.ts";
import { RENDER_JOBS_STORE_MS } from "../schemas/rendering/limits.ts";
import { PACKS_STORE_BYTES_MAX } from "../schemas/repositories/limits.ts";
import { TRACE_MESSAGES_PER_SUBJECT_MAX } from "../schemas/request-step.ts";
import {
  BLOB_STREAMS,
  objectSubjects,
  RENDER_JOBS_STORE,
  STREAMS,
  stateBucket,
  stateSubjects,
} from "../schemas/subjects.ts";

/** How long the stream keeps dead letters. */
const DEAD_LETTER_DAYS = 30;
/**
 * Limits the waiting mail of all actors. Above the limit the stream refuses mail, outboxes fill, and actors answer
 * `busy`.
 */
const MAIL_MESSAGES_MAX = 5_000_000;
/** Limits the stored dead letters; the stream drops the oldest. */
const DEAD_LETTERS_MAX = 100_000;

/**
 * Bytes of the bus's store that bounded streams leave free for states, mail, tasks and leases, which have no limit.
 */
const KEPT_STORE_BYTES = 1024 ** 3;

/**
 * Limits the bytes that crawls may store, for a disk of 20 GB: 80,000 pages of 100 kB. The bus allows less on a smaller
 * disk.
 */
export const CRAWL_STORE_BYTES_MAX = 8 * 1024 ** 3;
/** The smallest size of a stream of blobs. */
export const BLOB_STORE_BYTES_MIN = 128 * 1024 ** 2;
/** Limits the bytes of all caches together; the stream drops the oldest value. */
export const CACHE_BYTES_MAX = 512 * 1024 ** 2;

/** Limits the kept lines of an app's log, and how long the stream keeps them. */
const APP_LOG_LINES_MAX = 10_000;
const APP_LOG_MS = 3 * 24 * 3_600_000;
/**
 * Limits the bytes for bundles and large bodies of all apps and for the databases of agents. The bus allows less on a
 * smaller disk.
 */
const APPS_STORE_BYTES_MAX = 1024 ** 3;
const APP_LOGS_BYTES_MAX = 512 * 1024 ** 2;

/** Limits the bytes and the age of request steps: room for about 60,000 requests of four steps. */
const TRACES_BYTES_MAX = 24 * 1024 ** 2;
const TRACES_MS = 3 * 24 * 3_600_000;

const DAY_MS = 24 * 60 * 60 * 1_000;
const MARKER_MS = 60_000;

export interface StreamsOptions {
  replicas: number;
  /** The number of state streams: one on one machine; with more, commits of different shards run beside each other. */
  buckets: number;
  tasks: readonly TaskContract[];
  /** How long a watcher can see that a lease ended or a row was removed. Default: a minute. */
  markerMs?: number;
}

/** Returns the declarations of all streams. */
export function allStreams({
  replicas,
  buckets,
  markerMs = MARKER_MS,
}: StreamsOptions): StreamDeclaration[] {
  const shared = {
    storage: StorageType.File,
    num_replicas: replicas,
    // A nats-server (2.15.2) that recovers a replica truncates its compressed blocks at offsets of their uncompressed
    // content, which destroys the replica for good. Blobs are compressed before they are stored (blob-encoding.ts).
    compression: StoreCompression.None,
  };
  const state = Array.from({ length: buckets }, (_, index) => stateBucket(index)).flatMap(
    (bucket) => [stateStream(bucket, markerMs), journalStream(bucket)],
  );
  const replicated = [
    ...state,
    ...RUNTIME_STREAMS,
    ...AREA_STREAMS,
    RENDER_JOBS_STREAM,
    KEPT_STREAM,
  ];
  return [...replicated.map((stream) => ({ ...shared, ...stream })), CACHE_STREAM, TRACES_STREAM];
}

export type StreamDeclaration = Partial<StreamConfig> & { name: string };
export type SizedStream = StreamDeclaration & { max_bytes: number };

export const isSized = (stream: StreamDeclaration): stream is SizedStream =>
  stream.max_bytes !== undefined;

/**
 * A stream with the names of a KV bucket. The code declares it by hand, because it also holds leases, schedules and
 * atomic batches.
 */
function stateStream(bucket: string, markerMs: number): StreamDeclaration {
  const { stream, all } = stateSubjects(bucket);
  return {
    name: stream,
    description: "State of actors, with leases, epochs, outboxes and reminders of their shards",
    subjects: [all],
    max_msgs_per_subject: 1,
    // nats-server refuses schedules on a stream that discards new messages.
    discard: DiscardPolicy.Old,
    allow_rollup_hdrs: true,
    // Hosts read state from the leader; direct reads serve the tools of operators.
    allow_direct: true,
    allow_atomic: true,
    allow_msg_ttl: true,
    subject_delete_marker_ttl: nanos(markerMs),
    allow_msg_schedules: true,
  };
}

/**
 * Each commit expects its journal's last sequence, which a replicated stream compares with writes in flight for one
 * subject only. So a journal is one subject.
 */
function journalStream(bucket: string): StreamDeclaration {
  const { journalStream: name, journals } = stateSubjects(bucket);
  return {
    name,
    description: "Commits of actor hosts, which checkpoints bring to their keys",
    subjects: [journals],
    max_msgs_per_subject: JOURNAL_MESSAGES_KEPT,
    discard: DiscardPolicy.Old,
    // Direct reads serve the tools of operators.
    allow_direct: true,
    allow_atomic: true,
  };
}

/** A stream of blobs of one family in `BLOB_STREAMS`. A full stream refuses new blobs; nothing is dropped. */
function blobStream(
  family: keyof typeof BLOB_STREAMS,
  description: string,
  bytesMax: number,
): StreamDeclaration {
  return {
    name: BLOB_STREAMS[family],
    description,
    subjects: [`blob.${family}.>`],
    max_bytes: bytesMax,
    discard: DiscardPolicy.New,
    allow_direct: true,
    allow_atomic: true,
    allow_msg_ttl: true,
  };
}

const RUNTIME_STREAMS: StreamDeclaration[] = [
  {
    name: STREAMS.mail,
    description: "Messages from actor to actor, and how much of each shard's outbox is in here",
    subjects: ["mail.>", "sent.*"],
    allow_atomic: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
    // A full stream refuses mail: outboxes fill and actors answer `busy`. Nothing is dropped.
    max_msgs: MAIL_MESSAGES_MAX,
    discard: DiscardPolicy.New,
  },
  {
    name: STREAMS.tasks,
    description: "Work for workers, a subject a lane",
    subjects: ["task.>"],
    retention: RetentionPolicy.Workqueue,
    max_msgs_per_subject: LANE_TASKS_MAX,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
  },
  {
    name: STREAMS.dead,
    description: "Messages nobody could handle, with their error",
    subjects: ["dead.>"],
    allow_direct: true,
    max_age: nanos(DEAD_LETTER_DAYS * DAY_MS),
    max_msgs: DEAD_LETTERS_MAX,
    discard: DiscardPolicy.Old,
  },
];

const AREA_STREAMS: StreamDeclaration[] = [
  blobStream("crawl", "What crawls have found", CRAWL_STORE_BYTES_MAX),
  blobStream("git", "Packs of repositories, with their indexes", PACKS_STORE_BYTES_MAX),
  blobStream("app", "Bundles of apps, and bodies too large for a message", APPS_STORE_BYTES_MAX),
  {
    name: STREAMS.agents,
    description: "Databases of agents: an image, and the pages that changed since",
    subjects: ["agentlog.>"],
    // An image replaces all messages before it in one step.
    allow_rollup_hdrs: true,
    // Records of several agents are synced to disk together.
    allow_atomic: true,
    max_bytes: AGENTS_STORE_BYTES_MAX,
    discard: DiscardPolicy.New,
    allow_direct: true,
  },
  {
    name: STREAMS.appLogs,
    description: "What apps have printed",
    subjects: ["applog.>"],
    max_msgs_per_subject: APP_LOG_LINES_MAX,
    max_age: nanos(APP_LOG_MS),
    max_bytes: APP_LOGS_BYTES_MAX,
    discard: DiscardPolicy.Old,
    allow_direct: true,
  },
];

/** An object store by its names, as `Objm.create` of the library makes it. */
const RENDER_JOBS_STREAM: StreamDeclaration = {
  name: RENDER_JOBS_STORE.stream,
  description: "Requests and results of rendering jobs",
  subjects: objectSubjects(RENDER_JOBS_STORE.bucket).all,
  allow_direct: true,
  allow_rollup_hdrs: true,
  // Removes pieces that a killed process left behind.
  max_age: nanos(RENDER_JOBS_STORE_MS),
  max_bytes: RENDER_JOBS_STORE.bytesMax,
  discard: DiscardPolicy.New,
};

const KEPT_STREAM: StreamDeclaration = {
  name: STREAMS.kept,
  description: "Holds nothing: keeps room on the disk for the streams that have no bound",
  subjects: ["kept"],
  max_msgs: 1,
  max_bytes: KEPT_STORE_BYTES,
  discard: DiscardPolicy.New,
};

const CACHE_STREAM: StreamDeclaration = {
  name: STREAMS.cache,
  description: "What is remembered to save work, and may be lost",
  storage: StorageType.File,
  num_replicas: 1,
  // Messages are acknowledged before they are on disk: they may be lost.
  persist_mode: PersistMode.Async,
  // The stream has one copy, so no server truncates it: see `shared`.
  compression: StoreCompression.S2,
  subjects: ["cache.>"],
  max_msgs_per_subject: 1,
  max_bytes: CACHE_BYTES_MAX,
  discard: DiscardPolicy.Old,
  allow_direct: true,
  allow_msg_ttl: true,
};

/** Like the cache, this stream may be lost. */
const TRACES_STREAM: StreamDeclaration = {
  name: STREAMS.traces,
  description: "Steps of clients' requests through gateways, actors and workers",
  storage: StorageType.File,
  num_replicas: 1,
  persist_mode: PersistMode.Async,
  compression: StoreCompression.S2,
  subjects: ["trace.*"],
  // A client that repeats one request id pushes out the steps of few others.
  max_msgs_per_subject: TRACE_MESSAGES_PER_SUBJECT_MAX,
  max_age: nanos(TRACES_MS),
  max_bytes: TRACES_BYTES_MAX,
  discard: DiscardPolicy.Old,
  allow_direct: true,
};
