/**
 * The interface of the operations for operators and of the reader of traces. `scripts/` implements them with the bus.
 */
import type { RequestStep } from "../../schemas/request-step.ts";

export interface Operations {
  /** Returns the steps of all requests with this id, the earliest first. */
  steps(requestId: string, signal: AbortSignal): Promise<RequestStep[]>;
  hosts(): Promise<{ hosts: OwningHost[]; free: number[] }>;
  queues(): Promise<{ lanes: Lane[]; mail: number; deadLetters: number }>;
  streams(): Promise<StreamFigures[]>;
  disk(): { freeBytes: number; shortage: string | undefined } | undefined;
  deadLetters: DeadLetters;
}

export interface DeadLetters {
  /** Returns at most `count` dead letters with sequence numbers above `after`, the oldest first. */
  list(wanted: { after: number; count: number }): Promise<DeadLetter[]>;
  find(sequence: number): Promise<DeadLetter | undefined>;
  /** Sends the message again and removes the letter. */
  retry(letter: DeadLetter): Promise<void>;
  drop(letter: DeadLetter): Promise<void>;
}

export interface DeadLetter {
  sequence: number;
  address: string;
  message: string;
  input?: unknown;
  error: string;
  tries: number;
  buriedAt: number;
  requestId?: string | undefined;
  task?: { subject: string; id: string; key: string } | undefined;
}

interface OwningHost {
  id: string;
  lease: "held" | "leaving" | "gone";
  renewedAt: Date | undefined;
  shards: number[];
}

interface Lane {
  kind: string;
  lane: string;
  waiting: number;
  running: number;
  /** True if a further task is refused; in a lane that serves its keys in turn, a further task of one of the keys. */
  isFull: boolean;
  oldestAt: Date | undefined;
}

interface StreamFigures {
  stream: string;
  /** The number of replicas that lag behind the leader. */
  behind: number;
  /** The state of the stream; undefined if the stream has no leader. */
  info:
    | {
        state: { messages: number; bytes: number };
        config: { max_bytes: number; num_replicas: number };
      }
    | undefined;
  /** Bytes at which the stream refuses writes. Undefined if it has no such limit, or drops its oldest messages. */
  refusesAtBytes: number | undefined;
}
