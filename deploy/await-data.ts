/**
 * Waits until the streams and the data are ready. For a process whose bus user may not create streams or upgrade
 * data.
 */
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { type DataLayout, FIRST_LAYOUT, type WantedLayout } from "../schemas/data-layout.ts";
import { streamNames } from "../schemas/split-streams.ts";
import { LOSABLE_STREAMS } from "../schemas/subjects.ts";
import {
  DATA_FORMAT,
  dataFormatOf,
  findLayout,
  refuseNewerData,
  refuseOtherLayout,
} from "./data-format.ts";
import { refuseUnfinishedRestore } from "./restore-mark.ts";
import { whenClusterIsReady } from "./streams.ts";

const POLL_MS = 250;

interface AwaitOptions {
  signal: AbortSignal;
  /** Called with the names of the missing streams when a wait for them begins. Not called if no stream is missing. */
  missing(names: readonly string[]): void;
}

interface AwaitDataOptions extends AwaitOptions {
  /** The version of this program. */
  version: string;
  /** True if the bus user may read states. */
  readsState: boolean;
  wanted: WantedLayout;
}

/**
 * Resolves with the layout of the data when all streams exist and the data has this version's format. Rejects if a newer
 * version wrote the data, or if a setting asks for another layout.
 */
export async function awaitData(
  jetstream: JetStreamManager,
  { version, readsState, wanted, ...streams }: AwaitDataOptions,
): Promise<DataLayout> {
  await whenClusterIsReady(() => refuseUnfinishedRestore(jetstream));
  await awaitStreams(jetstream, { ...streams, layout: FIRST_LAYOUT });
  const layout = await awaitLayout(jetstream, streams.signal);
  refuseOtherLayout(layout, wanted);
  await awaitStreams(jetstream, { ...streams, layout });
  while (readsState) {
    await whenClusterIsReady(() => refuseNewerData(jetstream, { version }));
    if ((await dataFormatOf(jetstream)) >= DATA_FORMAT) break;
    await wait(POLL_MS, undefined, { signal: streams.signal });
  }
  return layout;
}

/** Waits until the first process with the role `actors` has stored the layout of the data. */
async function awaitLayout(jetstream: JetStreamManager, signal: AbortSignal): Promise<DataLayout> {
  for (;;) {
    const layout = await whenClusterIsReady(() => findLayout(jetstream));
    if (layout) return layout;
    await wait(POLL_MS, undefined, { signal });
  }
}

/** Waits until every stream exists. Rejects with the signal's reason if the signal aborts. */
async function awaitStreams(
  jetstream: JetStreamManager,
  { layout, signal, missing }: AwaitOptions & { layout: DataLayout },
): Promise<void> {
  // Does not wait for streams that may be lost: each has only one replica, and its server may be down.
  const names = streamNames(layout).filter((name) => !LOSABLE_STREAMS.has(name));
  for (let isTold = false; ; isTold = true) {
    const there = await Promise.all(names.map((name) => isThere(jetstream, name)));
    const absent = names.filter((_, index) => !there[index]);
    if (absent.length === 0) return;
    if (!isTold) missing(absent);
    await wait(POLL_MS, undefined, { signal });
  }
}

async function isThere(jetstream: JetStreamManager, name: string): Promise<boolean> {
  try {
    await jetstream.streams.info(name);
    return true;
  } catch (error) {
    // A cluster that is starting may have no leader yet, so the error is ignored and the request is repeated.
    if (error instanceof JetStreamApiError || error instanceof TimeoutError) return false;
    throw error;
  }
}
