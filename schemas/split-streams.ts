/**
 * The stores that the first start may split into several streams, and the names of their streams and subjects. A store
 * with one stream has plain names. In a store with several, each stream but the first has its number in its name and in
 * a token of its subjects: `MAIL-3` holds `mail-3.>`.
 */
import type { DataLayout } from "./data-layout.ts";
import {
  decodeKey,
  encodeKey,
  fnv1a32,
  ofAccount,
  STREAMS,
  shardOf,
  splitName,
  stateBucket,
  stateSubjects,
  taskConsumer,
  taskSubject,
  turnSubject,
  turnSubjects,
} from "./subjects.ts";

/** The stores of `STREAMS` that may have several streams, with the number of the layout that counts them. */
const SPLIT_STORES = {
  mail: "mailStreams",
  tasks: "taskStreams",
  agents: "agentStreams",
  packs: "packStreams",
} as const satisfies Partial<Record<keyof typeof STREAMS, keyof DataLayout>>;
type SplitStore = keyof typeof SPLIT_STORES;

/** The tokens of subjects that have the number of a stream: the name of the stream, and tokens of its subjects. */
const NUMBERED_TOKENS: Record<SplitStore, readonly string[]> = {
  mail: [STREAMS.mail, "mail", "sent"],
  tasks: [STREAMS.tasks, "task"],
  agents: [STREAMS.agents, "agentlog"],
  packs: [STREAMS.packs, "git"],
};

/** Limits the number of streams of these stores, because the bus permissions of each role list all of them by name. */
export const SPLIT_STREAMS_MAX = 16;

const isSplit = (store: string): store is SplitStore => Object.hasOwn(SPLIT_STORES, store);

/** Returns the names of all streams of a store, which has the name of its first stream. */
export function splitNames(layout: DataLayout, first: string): string[] {
  const stores = Object.keys(SPLIT_STORES).filter(isSplit);
  const store = stores.find((one) => STREAMS[one] === first);
  const count = store === undefined ? 1 : layout[SPLIT_STORES[store]];
  return Array.from({ length: count }, (_, index) => splitName(first, index));
}

/** Returns the name of the store to which a stream belongs: that of its first stream. */
export const storeOf = (stream: string) => stream.replace(/-\d+$/, "");

/** Returns a subject of the first stream of a store, and the same subject for each other stream that there may be. */
export function ofEachStream(subject: string): string[] {
  const tokens = subject.split(".");
  const numbered = Object.values(NUMBERED_TOKENS).find((some) =>
    tokens.some((token) => some.includes(token)),
  );
  if (!numbered) return [subject];
  return Array.from({ length: SPLIT_STREAMS_MAX }, (_, index) =>
    tokens.map((token) => (numbered.includes(token) ? splitName(token, index) : token)).join("."),
  );
}

/** Returns the names of all streams of data with this layout. */
export function streamNames(layout: DataLayout): string[] {
  const state = Array.from({ length: layout.stateStreams }, (_, index) =>
    stateSubjects(stateBucket(index)),
  );
  return [
    ...state.flatMap(({ stream, journalStream }) => [stream, journalStream]),
    ...Object.values(STREAMS).flatMap((first) => splitNames(layout, first)),
  ];
}

/** Returns the subjects of one stream of mail. */
export function mailIn(index: number) {
  const mail = splitName("mail", index);
  const sent = splitName("sent", index);
  return {
    index,
    stream: splitName(STREAMS.mail, index),
    all: `${mail}.>`,
    /**
     * The subject of the position up to which the stream has the mail of a shard's outbox. It is in the same stream as
     * the mail, so that one atomic batch can contain both.
     */
    sent: (shard: number | "*") => `${sent}.${shard}`,
    to: (shard: number, address: string) => `${mail}.${shard}.${address}`,
    toShard: (shard: number) => `${mail}.${shard}.>`,
  };
}
export type MailSubjects = ReturnType<typeof mailIn>;

/** Returns the subjects of the stream that has the mail to a shard. */
export const mailOf = ({ mailStreams }: Pick<DataLayout, "mailStreams">, shard: number) =>
  mailIn(shard % mailStreams);

/** Returns the subject of mail to an actor. */
export function mailTo(layout: DataLayout, address: string): string {
  const shard = shardOf(address, layout.shards);
  return mailOf(layout, shard).to(shard, address);
}

/** Returns the subjects of all streams of mail. */
export const allMail = ({ mailStreams }: Pick<DataLayout, "mailStreams">): MailSubjects[] =>
  Array.from({ length: mailStreams }, (_, index) => mailIn(index));

/** Returns the stream and the subjects of the logs of an account's agents. The account is the first token of a key. */
export function agentLogsOf({ agentStreams }: Pick<DataLayout, "agentStreams">, key: string) {
  const index = ofAccount(key.split(".", 1)[0] ?? "", agentStreams);
  const first = splitName("agentlog", index);
  return {
    stream: splitName(STREAMS.agents, index),
    /** The subject of the changes of one agent's database in order, starting with a complete image of the database. */
    log: (agent: string) => `${first}.${encodeKey(agent)}`,
    /** The subjects of the logs of all agents below an `appKey`, or below the key of a class. */
    beneath: (part: string) => `${first}.${encodeKey(part)}.>`,
    keyOf: (subject: string) => decodeKey(subject.slice(first.length + 1)),
  };
}

/** Returns the subjects of one stream of the logs of agents. */
export const agentLogsIn = (index: number) => ({
  stream: splitName(STREAMS.agents, index),
  all: `${splitName("agentlog", index)}.>`,
});

/** Returns the stream and the subjects of a lane of tasks. */
export function laneOf(
  { taskStreams }: Pick<DataLayout, "taskStreams">,
  { kind, lane }: { kind: string; lane: string },
) {
  const index = fnv1a32(taskConsumer(kind, lane)) % taskStreams;
  return {
    stream: splitName(STREAMS.tasks, index),
    subject: taskSubject(kind, lane, index),
    /** The subject of the queue of one key, and those of all keys, in a lane that serves its keys alternately. */
    turn: (key: string) => turnSubject(kind, lane, key, index),
    turns: turnSubjects(kind, lane, index),
  };
}

/** Returns the subjects of all tasks in one stream. */
export const allTasks = (stream: string) => `${stream.replace(STREAMS.tasks, "task")}.>`;
