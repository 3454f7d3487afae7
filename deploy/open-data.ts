/**
 * Prepares the data on the bus when a process starts: refuses unreadable data, declares the streams, and upgrades the
 * data.
 */
import type { JetStreamManager } from "@nats-io/jetstream";
import {
  type DataLayout,
  FIRST_LAYOUT,
  mapLayout,
  type WantedLayout,
} from "../schemas/data-layout.ts";
import { type StoreSizes, storeSizes } from "../schemas/store-sizes.ts";
import {
  refuseNewerData,
  refuseOtherLayout,
  storeFirstFormat,
  upgradeData,
} from "./data-format.ts";
import { refuseUnfinishedRestore } from "./restore-mark.ts";
import type { StreamsOptions } from "./stream-declarations.ts";
import { declareFirstStream, declareStreams, whenClusterIsReady } from "./streams.ts";

interface OpenOptions extends Omit<StreamsOptions, "layout" | "sizes"> {
  /** Returns the sizes of the stores, when the bus answers. Default: those for a disk of unknown size. */
  sizes?: () => Promise<StoreSizes>;
  version: string;
  /** Default: the stored layout. */
  wanted?: WantedLayout;
}

/** Prepares the data, and returns its layout. The first start chooses the layout. */
export async function openData(
  jetstream: JetStreamManager,
  { version, wanted = {}, sizes = async () => storeSizes(), ...streams }: OpenOptions,
): Promise<DataLayout> {
  await whenClusterIsReady(async () => {
    await refuseUnfinishedRestore(jetstream);
    await refuseNewerData(jetstream, { version });
  });
  await declareFirstStream(jetstream, streams);
  let layout = mapLayout((part) => wanted[part] ?? FIRST_LAYOUT[part]);
  await whenClusterIsReady(async () => {
    const { stored } = await storeFirstFormat(jetstream, { version, layout });
    layout = mapLayout((part) => stored[part]);
  });
  refuseOtherLayout(layout, wanted);
  await declareStreams(jetstream, { ...streams, layout, sizes: await sizes() });
  await whenClusterIsReady(() => upgradeData(jetstream, { version }));
  return layout;
}
