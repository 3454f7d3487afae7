/** The public types of agents: schedules, queue items, submissions and their retries. */

export interface RetryOptions {
  /** Total number of attempts. */
  maxAttempts?: number;
  baseDelayMs?: number;
  maxDelayMs?: number;
}

/** Options of all agents of a class, set as `static options`. */
export interface AgentClassOptions {
  /** Starts each request, call or timer only after the previous one has ended. */
  serialTurns?: boolean;
  /** Default retry options of `retry`, the queue and schedules. */
  retry?: RetryOptions;
  /** If false, clients do not receive the agent's name. The agent's address may not reveal the name. */
  sendIdentityOnConnect?: boolean;
}

export type ScheduleType = "scheduled" | "delayed" | "cron" | "interval";

export interface Schedule<T = unknown> {
  id: string;
  /** Name of the method to call. */
  callback: string;
  payload: T;
  type: ScheduleType;
  /** Next due time in seconds since 1970. */
  time: number;
  delayInSeconds?: number;
  cron?: string;
  intervalSeconds?: number;
  retry?: RetryOptions;
  /** Failed attempts of this occurrence. */
  attempts: number;
  /** `failed`: all attempts of a one-time schedule failed; it is kept until it is cancelled. */
  status: "pending" | "failed";
  error?: string;
}

export interface ScheduleOptions {
  retry?: RetryOptions;
  /**
   * Returns an existing schedule with the same callback and payload instead of creating one, whatever its delay or
   * date. For cron expressions and intervals this is the default, if the expression or interval is also the same.
   */
  idempotent?: boolean;
}

export interface ScheduleCriteria {
  id?: string;
  type?: ScheduleType;
  timeRange?: { start?: Date; end?: Date };
  /** Defaults to `pending`: failed schedules are listed only on request. */
  status?: "pending" | "failed";
}

export interface QueueItem<T = unknown> {
  id: string;
  callback: string;
  payload: T;
  /** In seconds since 1970. */
  createdAt: number;
  retry?: RetryOptions;
  attempts: number;
  /** `failed`: all attempts failed; the item is kept until it is removed or retried. */
  status: "pending" | "failed";
  error?: string;
}

export type SubmissionStatus =
  | "pending"
  | "running"
  | "completed"
  | "aborted"
  | "interrupted"
  | "error";

export interface Submission<T = unknown> {
  submissionId: string;
  idempotencyKey?: string;
  method: string;
  status: SubmissionStatus;
  attempts: number;
  result?: T;
  error?: string;
  metadata?: unknown;
  /** Times are in milliseconds since 1970. */
  createdAt: number;
  startedAt?: number;
  completedAt?: number;
}

/** `accepted` is false if the submission existed already. */
export type SubmissionReceipt = Submission & { accepted: boolean };

export interface SubmitOptions {
  submissionId?: string;
  idempotencyKey?: string;
  metadata?: unknown;
  /** Without retry options, a submission is attempted only once: if a crash interrupts it, it stays interrupted. */
  retry?: RetryOptions;
}

/** The last argument of a submitted method, after its payload. */
export interface SubmissionContext {
  submissionId: string;
  idempotencyKey?: string;
  attempt: number;
  signal: AbortSignal;
}

export type CancelOutcome = "not_found" | "already_terminal" | "cancelled";
