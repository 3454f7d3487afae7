/**
 * The numbers of shards and of streams. The first start chooses them, and they can never change for the same data,
 * because they determine the shard of each key and the stream of each message.
 */
import { SHARDS, STATE_STREAMS } from "./limits.ts";

export interface DataLayout {
  readonly shards: number;
  readonly stateStreams: number;
  /** Streams of mail. The shard of the receiver determines the stream. */
  readonly mailStreams: number;
  /** Streams of tasks. The lane determines the stream. */
  readonly taskStreams: number;
  /** Streams of the databases of agents, and of packs. The account determines the stream. */
  readonly agentStreams: number;
  readonly packStreams: number;
}

/** The layout of data that was stored without a layout, and the default for new data. */
export const FIRST_LAYOUT: DataLayout = {
  shards: SHARDS,
  stateStreams: STATE_STREAMS,
  mailStreams: 1,
  taskStreams: 1,
  agentStreams: 1,
  packStreams: 1,
};

/** The setting of each number. */
export const LAYOUT_SETTINGS = {
  shards: "TRUNKLINE_SHARDS",
  stateStreams: "TRUNKLINE_STATE_STREAMS",
  mailStreams: "TRUNKLINE_MAIL_STREAMS",
  taskStreams: "TRUNKLINE_TASK_STREAMS",
  agentStreams: "TRUNKLINE_AGENT_STREAMS",
  packStreams: "TRUNKLINE_PACK_STREAMS",
} as const satisfies Record<keyof DataLayout, string>;

/** The numbers of the layout that settings ask for. An unset number means the stored one, or the default. */
export type WantedLayout = { readonly [part in keyof DataLayout]?: number | undefined };

/** Returns the value that `of` gives for each number of a layout. */
export function mapLayout<T>(of: (part: keyof DataLayout) => T): Record<keyof DataLayout, T> {
  const parts = Object.keys(LAYOUT_SETTINGS) as (keyof DataLayout)[];
  return Object.fromEntries(parts.map((part) => [part, of(part)])) as Record<keyof DataLayout, T>;
}
