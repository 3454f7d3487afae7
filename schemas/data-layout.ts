/**
 * The numbers of shards and of state streams. The first start chooses them, and they can never change for the same
 * data, because they determine the shard of each key and the stream of each shard.
 */
import { SHARDS, STATE_STREAMS } from "./limits.ts";

export interface DataLayout {
  readonly shards: number;
  readonly stateStreams: number;
}

/** The layout of data that was stored without a layout, and the default for new data. */
export const FIRST_LAYOUT: DataLayout = { shards: SHARDS, stateStreams: STATE_STREAMS };
