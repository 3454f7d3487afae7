/**
 * The numbers of shards and of state streams. The first start chooses them for the life of the data, because each key
 * has its shard by them, and each shard its stream.
 */
import { SHARDS, STATE_STREAMS } from "./limits.ts";

export interface DataLayout {
  readonly shards: number;
  readonly stateStreams: number;
}

/** The layout of data without a stored one, and the default for new data. */
export const FIRST_LAYOUT: DataLayout = { shards: SHARDS, stateStreams: STATE_STREAMS };
