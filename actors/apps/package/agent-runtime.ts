/** The interface of the runtime for the base class of agents. The process that runs app code implements it. */
import type { Operation, OperationResult } from "../../../schemas/apps/app-process.ts";
import type { AgentConnection } from "./connection.ts";
import type { SqlResult, SqlRow, SqlValue } from "./sql.ts";
import type {
  AgentClassOptions,
  CancelOutcome,
  QueueItem,
  RetryOptions,
  Schedule,
  ScheduleCriteria,
  ScheduleOptions,
  Submission,
  SubmissionReceipt,
  SubmissionStatus,
  SubmitOptions,
} from "./types.ts";

/**
 * A critical section of an agent's code: while it is active, only events that belong to it are delivered. @internal
 */
export interface Block {
  /** The section that contains this one. */
  readonly outer: Block | undefined;
}

/** One agent in memory. @internal */
export interface AgentRuntime {
  /** The agent's number in its process. */
  readonly number: number;
  readonly address: { readonly name: string };
  /** The object of the app's class. */
  readonly instance: unknown;
  readonly classOptions: AgentClassOptions;
  readonly link: {
    operate(wanted: Operation, agent?: { number: number; after: number }): Promise<OperationResult>;
  };
  readonly database: {
    readonly log: { readonly bytes: number };
    run(sql: string, values: readonly unknown[]): SqlResult;
    own(sql: string, ...values: SqlValue[]): SqlRow[];
    keep(sql: string, ...values: SqlValue[]): SqlRow[];
    transaction<T>(work: () => T): T;
  };
  readonly gate: {
    /** Returns the number of the commit that a message must wait for. */
    after(): number;
    durable(): Promise<void>;
  };
  readonly inputs: {
    deliver<T>(event: () => T | Promise<T>, block?: Block): Promise<T>;
    hold<T>(operation: Promise<T>): Promise<T>;
    pass(event: () => void, block: Block | undefined): void;
  };
  readonly state: { get(): unknown; setByCode(state: unknown): void };
  readonly sockets: {
    list(tag?: string): AgentConnection[];
    get(id: string): AgentConnection | undefined;
    broadcast(message: unknown, without: readonly string[]): void;
    save(connection: AgentConnection): void;
  };
  readonly schedules: ScheduleKeeper;
  readonly queue: QueueKeeper;
  readonly submissions: SubmissionKeeper;
  background(work: () => unknown): void;
  blocking<T>(work: () => Promise<T>): Promise<T>;
  log(level: "warn" | "error", error: unknown): void;
  destroy(): void;
}

interface ScheduleKeeper {
  add(
    when: Date | string | number,
    callback: string,
    payload: unknown,
    options?: ScheduleOptions,
  ): Schedule;
  addEvery(
    seconds: number,
    callback: string,
    payload: unknown,
    options?: ScheduleOptions,
  ): Schedule;
  cancel(id: string): boolean;
  get(id: string): Schedule | undefined;
  list(criteria?: ScheduleCriteria): Schedule[];
}

interface QueueKeeper {
  push(callback: string, payload: unknown, options?: { retry?: RetryOptions; id?: string }): string;
  remove(id: string): boolean;
  removeAll(callback?: string): number;
  retry(id: string): boolean;
  get(id: string): QueueItem | undefined;
  list(): QueueItem[];
}

interface SubmissionKeeper {
  submit(method: string, payload: unknown, options?: SubmitOptions): SubmissionReceipt;
  inspect(id: string): Submission | undefined;
  wait(id: string, options?: { timeoutMs?: number }): Promise<Submission | undefined>;
  list(options?: { status?: SubmissionStatus; limit?: number }): Submission[];
  cancel(id: string): CancelOutcome;
  delete(id: string): boolean;
}
