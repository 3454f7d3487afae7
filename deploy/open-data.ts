/**
 * Prepares the data on the bus when a process starts: refuses unreadable data, declares the streams, and upgrades the
 * data.
 */
import type { JetStreamManager } from "@nats-io/jetstream";
import { type DataLayout, FIRST_LAYOUT } from "../schemas/data-layout.ts";
import {
  refuseNewerData,
  refuseOtherLayout,
  storeFirstFormat,
  upgradeData,
  type WantedLayout,
} from "./data-format.ts";
import { refuseUnfinishedRestore } from "./restore-mark.ts";
import type { StreamsOptions } from "./stream-declarations.ts";
import { declareFirstStream, declareStreams, whenClusterIsReady } from "./streams.ts";

interface OpenOptions extends Omit<StreamsOptions, "buckets"> {
  version: string;
  /** Default: the stored layout. */
  wanted?: WantedLayout;
}

const ANY_LAYOUT: WantedLayout = { shards: undefined, stateStreams: undefined };

/** Prepares the data, and returns its layout. The first start chooses the layout. */
export async function openData(
  jetstream: JetStreamManager,
  { version, wanted = ANY_LAYOUT, ...streams }: OpenOptions,
): Promise<DataLayout> {
  await whenClusterIsReady(async () => {
    await refuseUnfinishedRestore(jetstream);
    await refuseNewerData(jetstream, { version });
  });
  await declareFirstStream(jetstream, streams);
  const layout = {
    shards: wanted.shards ?? FIRST_LAYOUT.shards,
    stateStreams: wanted.stateStreams ?? FIRST_LAYOUT.stateStreams,
  };
  let { shards, stateStreams } = layout;
  await whenClusterIsReady(async () => {
    ({ shards, stateStreams } = (await storeFirstFormat(jetstream, { version, layout })).stored);
  });
  refuseOtherLayout({ shards, stateStreams }, wanted);
  await declareStreams(jetstream, { ...streams, buckets: stateStreams });
  await whenClusterIsReady(() => upgradeData(jetstream, { version }));
  return { shards, stateStreams };
}
