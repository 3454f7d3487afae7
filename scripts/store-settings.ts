/** The settings of the streams on the bus: into how many each store is split, and how many bytes each may have. */
import {
  SHARDS,
  SHARDS_MAX,
  SHARDS_MIN,
  STATE_STREAMS,
  STATE_STREAMS_MAX,
} from "../schemas/limits.ts";
import { SPLIT_STREAMS_MAX } from "../schemas/split-streams.ts";
import { STORE_BYTES_SETTING_MIN } from "../schemas/store-limits.ts";
import { BYTES_MAX, integer, powerOfTwo } from "./setting-numbers.ts";

export const STORE_SETTINGS = {
  TRUNKLINE_SHARDS: powerOfTwo(SHARDS_MIN, SHARDS_MAX).meta({
    description: `Number of shards, the units in which hosts divide the actors: a power of two from ${SHARDS_MIN} to ${SHARDS_MAX}, some six for each process with the role \`actors\`. The first start stores it for the life of the data. Later starts need no value and refuse another one`,
    unset: `the stored number; \`${SHARDS}\` at the first start`,
  }),
  TRUNKLINE_STATE_STREAMS: powerOfTwo(1, STATE_STREAMS_MAX).meta({
    description: `Number of streams that hold the state of actors, each with a journal: a power of two up to ${STATE_STREAMS_MAX}. The first start stores it as it does the number of shards`,
    unset: `the stored number; \`${STATE_STREAMS}\` at the first start`,
  }),
  TRUNKLINE_MAIL_STREAMS: powerOfTwo(1, SPLIT_STREAMS_MAX).meta({
    description: `Number of streams that hold mail between actors: a power of two up to ${SPLIT_STREAMS_MAX}. The first start stores it as it does the number of shards`,
    unset: "the stored number; `1` at the first start",
  }),
  TRUNKLINE_TASK_STREAMS: powerOfTwo(1, SPLIT_STREAMS_MAX).meta({
    description: `Number of streams that hold tasks for workers, each some lanes: a power of two up to ${SPLIT_STREAMS_MAX}. The first start stores it as it does the number of shards`,
    unset: "the stored number; `1` at the first start",
  }),
  TRUNKLINE_AGENT_STREAMS: powerOfTwo(1, SPLIT_STREAMS_MAX).meta({
    description: `Number of streams that hold the databases of agents, each those of some accounts: a power of two up to ${SPLIT_STREAMS_MAX}. The first start stores it as it does the number of shards`,
    unset: "the stored number; `1` at the first start",
  }),
  TRUNKLINE_PACK_STREAMS: powerOfTwo(1, SPLIT_STREAMS_MAX).meta({
    description: `Number of streams that hold the packs of repositories, each those of some accounts: a power of two up to ${SPLIT_STREAMS_MAX}. The first start stores it as it does the number of shards`,
    unset: "the stored number; `1` at the first start",
  }),
  TRUNKLINE_STORE_BYTES: storeBytes().meta({
    description:
      "Bytes of the bus's disk that all streams may have together, for the role `actors`. Streams grow at a start that finds more, and never shrink",
    unset:
      "three quarters of the disk of `TRUNKLINE_DATA` that is free or stores streams; with `TRUNKLINE_NATS_URL` 36 GiB, or what the servers grant",
  }),
  TRUNKLINE_PACKS_BYTES: storeBytes().meta({
    description:
      "Bytes of the store of packs of repositories and large files. When it is full, it refuses writes",
    unset: "16 of 34 parts of what `TRUNKLINE_STORE_BYTES` leaves beside 2 GiB of other streams",
  }),
  TRUNKLINE_CRAWL_BYTES: storeBytes().meta({
    description: "Bytes of the store of crawled pages. When it is full, it refuses writes",
    unset: "8 of 34 parts of what `TRUNKLINE_STORE_BYTES` leaves beside 2 GiB of other streams",
  }),
  TRUNKLINE_RENDER_JOBS_BYTES: storeBytes().meta({
    description:
      "Bytes of the store of requests and results of rendering jobs. When it is full, it refuses writes",
    unset: "4 of 34 parts of what `TRUNKLINE_STORE_BYTES` leaves beside 2 GiB of other streams",
  }),
  TRUNKLINE_AGENTS_BYTES: storeBytes().meta({
    description: "Bytes of the store of databases of agents. When it is full, it refuses writes",
    unset: "4 of 34 parts of what `TRUNKLINE_STORE_BYTES` leaves beside 2 GiB of other streams",
  }),
  TRUNKLINE_APPS_BYTES: storeBytes().meta({
    description:
      "Bytes of the store of bundles of apps and large bodies. When it is full, it refuses writes",
    unset: "2 of 34 parts of what `TRUNKLINE_STORE_BYTES` leaves beside 2 GiB of other streams",
  }),
};

/** Parses the bytes of a store, or of all stores. */
function storeBytes() {
  return integer(STORE_BYTES_SETTING_MIN, BYTES_MAX).optional();
}
