/** Waits until streams and data are ready, in a process whose user may not create or upgrade them. */
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { LOSABLE_STREAMS, STREAMS, stateBucket, stateSubjects } from "../schemas/subjects.ts";
import { DATA_FORMAT, dataFormatOf, refuseNewerData } from "./data-format.ts";
import { refuseUnfinishedRestore } from "./restore-mark.ts";
import { whenClusterIsReady } from "./streams.ts";

const POLL_MS = 250;

interface AwaitOptions {
  /** The number of state streams. */
  buckets: number;
  signal: AbortSignal;
  /** Called once, with the names of the missing streams. */
  missing(names: readonly string[]): void;
}

interface AwaitDataOptions extends AwaitOptions {
  /** The version of this program. */
  version: string;
  /** True if the user may read states, including the format of the data. */
  readsState: boolean;
}

/**
 * Resolves when all streams exist and the data has this version's format. Rejects if a newer version wrote the data.
 */
export async function awaitData(
  jetstream: JetStreamManager,
  { version, readsState, ...streams }: AwaitDataOptions,
): Promise<void> {
  await whenClusterIsReady(() => refuseUnfinishedRestore(jetstream));
  await awaitStreams(jetstream, streams);
  while (readsState) {
    await whenClusterIsReady(() => refuseNewerData(jetstream, { version }));
    if ((await dataFormatOf(jetstream)) >= DATA_FORMAT) return;
    await wait(POLL_MS, undefined, { signal: streams.signal });
  }
}

/** Resolves when every stream exists. Rejects with the signal's reason. */
async function awaitStreams(
  jetstream: JetStreamManager,
  { buckets, signal, missing }: AwaitOptions,
): Promise<void> {
  const state = Array.from({ length: buckets }, (_, index) => stateSubjects(stateBucket(index)));
  const names = [
    ...state.flatMap(({ stream, journalStream }) => [stream, journalStream]),
    // A server with the only copy of a losable stream may be away.
    ...Object.values(STREAMS).filter((name) => !LOSABLE_STREAMS.has(name)),
  ];
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
    // A starting cluster has no leader yet.
    if (error instanceof JetStreamApiError || error instanceof TimeoutError) return false;
    throw error;
  }
}
