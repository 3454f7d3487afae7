/** The public types of agents: schedules, items of the queue, submissions, and their retries. */

export interface RetryOptions {
  /** How often it is tried in all. */
  maxAttempts?: number;
  baseDelayMs?: number;
  maxDelayMs?: number;
}

/** Options of all agents of a class, set as `static options`. */
export interface AgentClassOptions {
  /** No request, call or timer begins before the one before it has ended. */
  serialTurns?: boolean;
  /** Default number of attempts of `retry`, the queue and schedules. */
  retry?: RetryOptions;
  /** False: clients are not told the agent's name, which they may not know from its address. */
  sendIdentityOnConnect?: boolean;
}

export type ScheduleType = "scheduled" | "delayed" | "cron" | "interval";

export interface Schedule<T = unknown> {
  id: string;
  /** The method that is called. */
  callback: string;
  payload: T;
  type: ScheduleType;
  /** When it is next due, in seconds since 1970. */
  time: number;
  delayInSeconds?: number;
  cron?: string;
  intervalSeconds?: number;
  retry?: RetryOptions;
  /** Tries of this occurrence that failed. */
  attempts: number;
  /** `failed`: all tries of one that comes once have failed; it is kept until it is cancelled. */
  status: "pending" | "failed";
  error?: string;
}

export interface ScheduleOptions {
  retry?: RetryOptions;
  /**
   * A schedule of the same callback and payload is returned and not made again, whatever its delay or date. Without a
   * word it is so with cron and intervals, where the expression or the interval is the same too.
   */
  idempotent?: boolean;
}

export interface ScheduleCriteria {
  id?: string;
  type?: ScheduleType;
  timeRange?: { start?: Date; end?: Date };
  /** Failed ones are listed only when they are asked for. */
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
  /** A failed item has had all its tries; it is kept until it is taken out or retried. */
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

/** `accepted` is false where the submission was there already. */
export type SubmissionReceipt = Submission & { accepted: boolean };

export interface SubmitOptions {
  submissionId?: string;
  idempotencyKey?: string;
  metadata?: unknown;
  /** Without it a submission is begun once: one that a crash interrupted stays so. */
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
