/**
 * The stores that the first start may split into several streams, and the names of their streams and subjects. A store
 * with one stream has plain names. In a store with several, each stream but the first has its number in its name and in
 * the first token of its subjects: `MAIL-3` holds `mail-3.>`.
 */
import type { DataLayout } from "./data-layout.ts";
import { STREAMS, shardOf, stateBucket, stateSubjects } from "./subjects.ts";

/** The stores of `STREAMS` that may have several streams, with the number of the layout that counts them. */
const SPLIT_STORES = { mail: "mailStreams" } as const satisfies Partial<
  Record<keyof typeof STREAMS, keyof DataLayout>
>;
type SplitStore = keyof typeof SPLIT_STORES;

/** The tokens of subjects that have the number of a stream: the name of the stream, and tokens of its subjects. */
const NUMBERED_TOKENS: Record<SplitStore, readonly string[]> = {
  mail: [STREAMS.mail, "mail", "sent"],
};

/** Limits the number of streams of these stores, because the bus permissions of each role list all of them by name. */
export const SPLIT_STREAMS_MAX = 16;

/** Returns the name, or the first token, that belongs to one stream of a store. */
export const splitName = (name: string, index: number) => (index === 0 ? name : `${name}-${index}`);

/** Returns the number of streams of a store. */
export const splitCount = (layout: DataLayout, store: keyof typeof STREAMS) =>
  isSplit(store) ? layout[SPLIT_STORES[store]] : 1;

const isSplit = (store: string): store is SplitStore => Object.hasOwn(SPLIT_STORES, store);

/** Returns the names of all streams of a store. */
export const splitNames = (layout: DataLayout, store: keyof typeof STREAMS): string[] =>
  Array.from({ length: splitCount(layout, store) }, (_, index) => splitName(STREAMS[store], index));

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
  const stores = Object.keys(STREAMS) as (keyof typeof STREAMS)[];
  return [
    ...state.flatMap(({ stream, journalStream }) => [stream, journalStream]),
    ...stores.flatMap((store) => splitNames(layout, store)),
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
