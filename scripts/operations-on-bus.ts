/** Connects the gateway's operator routes and its request traces with the bus. */
import type { Bus } from "../actors/runtime/bus/bus.ts";
import { Semaphore } from "../actors/runtime/lib/semaphore.ts";
import { inRequest, recordStep } from "../actors/runtime/lib/trace.ts";
import {
  dropDeadLetter,
  findDeadLetter,
  listDeadLetters,
  retryDeadLetter,
} from "../actors/runtime/mail/dead-letters.ts";
import { readSteps } from "../actors/runtime/observe/request-steps.ts";
import { readShardOwners } from "../actors/runtime/placement/shard-owners.ts";
import type { RequestTraces } from "../gateway/http/middleware/record-request.ts";
import type { Operations } from "../gateway/platform/operations.ts";
import type { DiskRoom } from "./disk-room.ts";
import { readQueues, readStreams } from "./queues/queues.ts";

export const requestTraces: RequestTraces = { inRequest, record: recordStep };

/**
 * Maximum number of parallel searches for request steps in a process: each may load all 24 MiB of the stream TRACES.
 */
const SEARCHES_MAX = 2;

export function operationsOn(bus: Bus, disk: DiskRoom | undefined): Operations {
  const searches = new Semaphore(SEARCHES_MAX);
  return {
    steps: (requestId, signal) => searches.run(() => readSteps(bus, requestId, signal)),
    hosts: () => readShardOwners(bus),
    queues: () => readQueues(bus),
    streams: () => readStreams(bus),
    disk: () => disk && { freeBytes: disk.freeBytes, shortage: disk.shortage },
    deadLetters: {
      async list({ after, count }) {
        const letters = [];
        for await (const letter of listDeadLetters(bus, after)) {
          letters.push(letter);
          if (letters.length >= count) break;
        }
        return letters;
      },
      find: (sequence) => findDeadLetter(bus, sequence),
      retry: (letter) => retryDeadLetter(bus, letter),
      drop: (letter) => dropDeadLetter(bus, letter),
    },
  };
}
