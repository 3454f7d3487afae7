/** How the gateway speaks to actors and workers: all it knows of the bus. */
import type { z } from "zod";
import type {
  Calls,
  Contract,
  DeepReadonly,
  Messages,
  Reply,
  Sends,
  TaskContract,
  TaskMessages,
} from "../schemas/contract.ts";

export interface CallOptions {
  deadlineMs?: number;
  signal?: AbortSignal;
}

/** A task under way: its reply, and the bytes that follow it. Leaving `chunks` early cancels the task. */
export interface TaskRun<R> {
  reply: R | Promise<R>;
  chunks: AsyncIterable<Uint8Array>;
}

export interface Actors {
  /** Rejects with ActorError. */
  call<M extends Messages, N extends Calls<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    options?: CallOptions,
  ): Promise<Reply<M[N]>>;

  /** Resolves when the message is durable. */
  send<M extends Messages, N extends Sends<M>>(
    contract: Contract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
  ): Promise<void>;

  /** Rejects with ActorError before the first byte; `chunks` throws it after that. */
  run<M extends TaskMessages, N extends Calls<M>>(
    tasks: TaskContract<M>,
    key: string,
    message: N,
    input: DeepReadonly<z.input<M[N]["input"]>>,
    options: { deadlineMs: number; signal: AbortSignal },
  ): Promise<TaskRun<Reply<M[N]>>>;
}
