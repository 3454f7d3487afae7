/** Waits for the streams, in a process whose user may not make them. */
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { STREAMS, stateBucket, stateSubjects } from "../schemas/subjects.ts";

const POLL_MS = 250;

interface AwaitOptions {
  /** The number of state streams. */
  buckets: number;
  signal: AbortSignal;
  /** Called once, with the names of the streams that are not there. */
  missing(names: readonly string[]): void;
}

/** Resolves when every stream is there. Rejects with the signal's reason. */
export async function awaitStreams(
  jetstream: JetStreamManager,
  { buckets, signal, missing }: AwaitOptions,
): Promise<void> {
  const state = Array.from({ length: buckets }, (_, index) => stateSubjects(stateBucket(index)));
  const names = [...state.map(({ stream }) => stream), ...Object.values(STREAMS)];
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
    // A cluster that comes up has no leader yet.
    if (error instanceof JetStreamApiError || error instanceof TimeoutError) return false;
    throw error;
  }
}
