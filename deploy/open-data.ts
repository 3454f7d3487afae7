/**
 * Opens the data on the bus at the start of a process: refuses unreadable data, declares the streams, and upgrades the
 * data.
 */
import type { JetStreamManager } from "@nats-io/jetstream";
import { refuseNewerData, upgradeData } from "./data-format.ts";
import { refuseUnfinishedRestore } from "./restore-mark.ts";
import type { StreamsOptions } from "./stream-declarations.ts";
import { declareStreams, whenClusterIsReady } from "./streams.ts";

export async function openData(
  jetstream: JetStreamManager,
  { version, ...streams }: StreamsOptions & { version: string },
): Promise<void> {
  await whenClusterIsReady(async () => {
    await refuseUnfinishedRestore(jetstream);
    await refuseNewerData(jetstream, { version });
  });
  await declareStreams(jetstream, streams);
  await whenClusterIsReady(() => upgradeData(jetstream, { version }));
}
