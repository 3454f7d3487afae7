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
import type { TaskContract } from "../schemas/contract.ts";
import type { DataLayout } from "../schemas/data-layout.ts";
import { JOURNAL_MESSAGES_KEPT, LANE_TASKS_MAX } from "../schemas/limits.ts";
import { RENDER_JOBS_STORE_MS } from "../schemas/rendering/limits.ts";
import { TRACE_MESSAGES_PER_SUBJECT_MAX } from "../schemas/request-step.ts";
import {
  agentLogsIn,
  allMail,
  allTasks,
  type MailSubjects,
  splitNames,
  storeOf,
} from "../schemas/split-streams.ts";
import {
  APP_LOGS_BYTES_MAX,
  CACHE_BYTES_MAX,
  KEPT_STORE_BYTES,
  STORE_BYTES_SETTING_MIN,
  TRACES_BYTES_MAX,
} from "../schemas/store-limits.ts";
import { type StoreSizes, storeSizes } from "../schemas/store-sizes.ts";
import {
  blobFamily,
  objectSubjects,
  RENDER_JOBS_STORE,
  STREAMS,
  stateBucket,
  stateSubjects,
} from "../schemas/subjects.ts";

/** Number of days for which the stream stores a dead letter. */
const DEAD_LETTER_DAYS = 30;
/**
 * Maximum number of waiting messages in a stream of mail. Above it, the stream refuses mail, outboxes become full, and
 * actors answer `busy`.
 */
const MAIL_MESSAGES_MAX = 5_000_000;
/** Maximum number of dead letters. Above it, the stream drops the oldest. */
const DEAD_LETTERS_MAX = 100_000;

/** The smallest size limit of a store that refuses writes when it is full. */
export const BLOB_STORE_BYTES_MIN = STORE_BYTES_SETTING_MIN;
/** Maximum number of log lines of an app, and how long the stream keeps a line. */
const APP_LOG_LINES_MAX = 10_000;
const APP_LOG_MS = 3 * 24 * 3_600_000;

/** Maximum age of request steps. */
const TRACES_MS = 3 * 24 * 3_600_000;

const DAY_MS = 24 * 60 * 60 * 1_000;
const MARKER_MS = 60_000;

export interface StreamsOptions {
  replicas: number;
  /** How many streams each store has. One is enough on one machine. Several store messages in parallel. */
  layout: DataLayout;
  /** Default: the sizes for a disk of unknown size. */
  sizes?: StoreSizes;
  /**
   * If false, new streams get their smallest size and existing streams keep theirs. A stream that has grown never
   * shrinks, so only a process that knows the right sizes may let streams grow. Default: true.
   */
  grow?: boolean;
  tasks: readonly TaskContract[];
  /** How long a watcher can still see the marker of an expired lease or a removed row. Default: one minute. */
  markerMs?: number;
}

/** Returns the declarations of all streams. */
export function allStreams({
  replicas,
  layout,
  sizes = storeSizes(),
  markerMs = MARKER_MS,
}: StreamsOptions): StreamDeclaration[] {
  const shared = {
    storage: StorageType.File,
    num_replicas: replicas,
    // No compression by the server, because nats-server (2.15.2) has a bug: when it recovers a replica, it truncates
    // compressed blocks at offsets of their uncompressed content and destroys the replica. Blobs are compressed
    // before they are stored instead (blob-encoding.ts).
    compression: StoreCompression.None,
  };
  const state = Array.from({ length: layout.stateStreams }, (_, index) =>
    stateBucket(index),
  ).flatMap((bucket) => [stateStream(bucket, markerMs), journalStream(bucket)]);
  const replicated = [
    ...state,
    ...allMail(layout).map(mailStream),
    ...splitNames(layout, STREAMS.tasks).map(taskStream),
    DEAD_STREAM,
    ...areaStreams(layout, sizes),
    APP_LOGS_STREAM,
    renderJobsStream(sizes.renderJobs),
    KEPT_STREAM,
  ];
  return [...replicated.map((stream) => ({ ...shared, ...stream })), CACHE_STREAM, TRACES_STREAM];
}

export type StreamDeclaration = Partial<StreamConfig> & { name: string };
export type SizedStream = StreamDeclaration & { max_bytes: number };

export const isSized = (stream: StreamDeclaration): stream is SizedStream =>
  stream.max_bytes !== undefined;

/**
 * A stream with the name and subjects of a KV bucket. It is not created with the KV library, because it also holds
 * leases, schedules and atomic batches.
 */
function stateStream(bucket: string, markerMs: number): StreamDeclaration {
  const { stream, all } = stateSubjects(bucket);
  return {
    name: stream,
    description: "State of actors, with leases, epochs, outboxes and reminders of their shards",
    subjects: [all],
    max_msgs_per_subject: 1,
    // nats-server refuses schedules on a stream with the policy "new", which refuses new messages when full.
    discard: DiscardPolicy.Old,
    allow_rollup_hdrs: true,
    // Direct reads are allowed for operators' tools. Hosts read states from the leader.
    allow_direct: true,
    allow_atomic: true,
    allow_msg_ttl: true,
    subject_delete_marker_ttl: nanos(markerMs),
    allow_msg_schedules: true,
  };
}

/**
 * The journals of a state stream. Each journal is one subject. A commit expects the last sequence of its journal, and
 * a replicated stream compares this sequence with writes in progress only within one subject.
 */
function journalStream(bucket: string): StreamDeclaration {
  const { journalStream: name, journals } = stateSubjects(bucket);
  return {
    name,
    description: "Commits of actor hosts, which checkpoints bring to their keys",
    subjects: [journals],
    max_msgs_per_subject: JOURNAL_MESSAGES_KEPT,
    discard: DiscardPolicy.Old,
    // Direct reads are allowed for operators' tools.
    allow_direct: true,
    allow_atomic: true,
  };
}

/**
 * Returns the smallest size that a stream begins with. The streams of one store have together what a store with one
 * stream has.
 */
export const leastBytes = ({ name, max_bytes: bytes }: SizedStream, layout: DataLayout) =>
  Math.min(bytes, Math.floor(BLOB_STORE_BYTES_MIN / splitNames(layout, storeOf(name)).length));

/** A stream for one family of blobs in `BLOB_STREAMS`. When it is full, it refuses new blobs and drops none. */
function blobStream(
  { stream, all }: { stream: string; all: string },
  description: string,
  bytes: number,
): StreamDeclaration {
  return {
    name: stream,
    description,
    subjects: [all],
    max_bytes: bytes,
    discard: DiscardPolicy.New,
    allow_direct: true,
    allow_atomic: true,
    allow_msg_ttl: true,
  };
}

const mailStream = ({ stream, all, sent }: MailSubjects): StreamDeclaration => ({
  name: stream,
  description: "Messages from actor to actor, and how much of each shard's outbox is in here",
  subjects: [all, sent("*")],
  allow_atomic: true,
  allow_rollup_hdrs: true,
  allow_direct: true,
  // When the stream is full, it refuses mail and drops none: outboxes become full, and actors answer `busy`.
  max_msgs: MAIL_MESSAGES_MAX,
  discard: DiscardPolicy.New,
});

const taskStream = (name: string): StreamDeclaration => ({
  name,
  description: "Work for workers, a subject a lane",
  subjects: [allTasks(name)],
  retention: RetentionPolicy.Workqueue,
  max_msgs_per_subject: LANE_TASKS_MAX,
  discard: DiscardPolicy.New,
  discard_new_per_subject: true,
});

const DEAD_STREAM: StreamDeclaration = {
  name: STREAMS.dead,
  description: "Messages nobody could handle, with their error",
  subjects: ["dead.>"],
  allow_direct: true,
  max_age: nanos(DEAD_LETTER_DAYS * DAY_MS),
  max_msgs: DEAD_LETTERS_MAX,
  discard: DiscardPolicy.Old,
};

/** Streams of the areas. Each refuses writes when it is full. The streams of one store share its bytes equally. */
function areaStreams(layout: DataLayout, sizes: StoreSizes): StreamDeclaration[] {
  const packs = blobFamily("git", layout.packStreams);
  const [crawl, apps] = [blobFamily("crawl"), blobFamily("app")];
  const agents = Array.from({ length: layout.agentStreams }, (_, index) => agentLogsIn(index));
  const share = (bytes: number, count: number) => Math.floor(bytes / count);
  return [
    ...crawl.map((of) => blobStream(of, "What crawls have found", sizes.crawl)),
    ...packs.map((of) =>
      blobStream(
        of,
        "Packs of repositories, with their indexes",
        share(sizes.packs, layout.packStreams),
      ),
    ),
    ...apps.map((of) =>
      blobStream(of, "Bundles of apps, and bodies too large for a message", sizes.apps),
    ),
    ...agents.map(({ stream, all }) => ({
      name: stream,
      description: "Databases of agents: an image, and the pages that changed since",
      subjects: [all],
      // A new image of a database replaces all earlier messages of the agent in one atomic step.
      allow_rollup_hdrs: true,
      // A batch lets the server sync the records of several agents to disk together.
      allow_atomic: true,
      // The first record of an agent that stores nothing expires.
      allow_msg_ttl: true,
      max_bytes: share(sizes.agents, layout.agentStreams),
      discard: DiscardPolicy.New,
      allow_direct: true,
    })),
  ];
}

const APP_LOGS_STREAM: StreamDeclaration = {
  name: STREAMS.appLogs,
  description: "What apps have printed",
  subjects: ["applog.>"],
  max_msgs_per_subject: APP_LOG_LINES_MAX,
  max_age: nanos(APP_LOG_MS),
  max_bytes: APP_LOGS_BYTES_MAX,
  discard: DiscardPolicy.Old,
  allow_direct: true,
};

/** A stream with the same names as an object store that `Objm.create` of the NATS library creates. */
const renderJobsStream = (bytes: number): StreamDeclaration => ({
  name: RENDER_JOBS_STORE.stream,
  description: "Requests and results of rendering jobs",
  subjects: objectSubjects(RENDER_JOBS_STORE.bucket).all,
  allow_direct: true,
  allow_rollup_hdrs: true,
  // Removes parts of objects that a killed process left behind.
  max_age: nanos(RENDER_JOBS_STORE_MS),
  max_bytes: bytes,
  discard: DiscardPolicy.New,
});

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
  // The server acknowledges messages before they are on disk, so they may be lost in a crash.
  persist_mode: PersistMode.Async,
  // Compression is safe here: the stream has one replica, so the bug described at `shared` does not occur.
  compression: StoreCompression.S2,
  subjects: ["cache.>"],
  max_msgs_per_subject: 1,
  max_bytes: CACHE_BYTES_MAX,
  discard: DiscardPolicy.Old,
  allow_direct: true,
  allow_msg_ttl: true,
};

/** The steps of requests. Like the cache, this stream may be lost. */
const TRACES_STREAM: StreamDeclaration = {
  name: STREAMS.traces,
  description: "Steps of clients' requests through gateways, actors and workers",
  storage: StorageType.File,
  num_replicas: 1,
  persist_mode: PersistMode.Async,
  compression: StoreCompression.S2,
  subjects: ["trace.*"],
  // If a client repeats the same request id, this limit protects the steps of most other requests.
  max_msgs_per_subject: TRACE_MESSAGES_PER_SUBJECT_MAX,
  max_age: nanos(TRACES_MS),
  max_bytes: TRACES_BYTES_MAX,
  discard: DiscardPolicy.Old,
  allow_direct: true,
};
