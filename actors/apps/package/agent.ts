/** The base class of agents: code for one entity, with its own state, database, sockets, timers and queue. */
import { randomUUID } from "node:crypto";
import { OUTGOING_SECRETS_MAX } from "../../../schemas/apps/limits.ts";
import { type AgentContext, runtimeOf } from "./agent-context.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { type CallableMetadata, callableMetadata } from "./callable.ts";
import type {
  AgentConnection,
  Connection,
  ConnectionContext,
  WebSocketMessage,
} from "./connection.ts";
import { AgentRefusal } from "./refusal.ts";
import { requestOf } from "./request-of.ts";
import { withRetry } from "./retry.ts";
import type { SqlRow } from "./sql.ts";
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

type MethodName<T> = keyof T & string;

export class Agent<Env = unknown, State = unknown> {
  static options: AgentClassOptions = {};

  readonly ctx: AgentContext;
  readonly env: Env;
  declare initialState: State;
  readonly #open: AgentRuntime;

  constructor(ctx: AgentContext, env: Env) {
    this.ctx = ctx;
    this.env = env;
    this.#open = runtimeOf(ctx);
  }

  get name(): string {
    return this.#open.address.name;
  }

  get state(): State {
    return this.#open.state.get() as State;
  }

  /** Stores a new state and sends it to all connected clients. Throws what `validateStateChange` throws. */
  setState(state: State): void {
    this.#open.state.setByCode(state);
  }

  /** Override this method to reject a state: an error thrown here prevents the change. */
  validateStateChange(_state: State, _source: Connection | "server"): void {}

  onStateChanged(state: State, source: Connection | "server"): void | Promise<void> {
    return this.onStateUpdate(state, source);
  }

  /** Older name of `onStateChanged`. */
  onStateUpdate(_state: State, _source: Connection | "server"): void | Promise<void> {}

  /** Runs before any other method each time the agent is loaded into memory. */
  onStart(_props?: unknown): void | Promise<void> {}

  onRequest(_request: Request): Response | Promise<Response> {
    return new Response("Not implemented", { status: 404 });
  }

  onConnect(_connection: Connection, _context: ConnectionContext): void | Promise<void> {}

  onMessage(_connection: Connection, _message: WebSocketMessage): void | Promise<void> {}

  onClose(
    _connection: Connection,
    _code: number,
    _reason: string,
    _wasClean: boolean,
  ): void | Promise<void> {}

  /**
   * Handles an error of the agent's code. Called with two arguments for an error in a connection's event, and with
   * one argument for other errors.
   */
  onError(connection: Connection, error: unknown): void | Promise<void>;
  onError(error: unknown): void | Promise<void>;
  onError(connectionOrError: unknown, error?: unknown): void | Promise<void> {
    this.#open.log("error", error ?? connectionOrError);
  }

  /** Runs one SQL statement. `${values}` are bound as parameters. */
  sql<Row = SqlRow>(strings: TemplateStringsArray, ...values: unknown[]): Row[] {
    return this.#open.database.run(strings.join("?"), values).rows as Row[];
  }

  getConnections<T = unknown>(tag?: string): Connection<T>[] {
    return this.#open.sockets.list(tag) as Connection<T>[];
  }

  getConnection<T = unknown>(id: string): Connection<T> | undefined {
    return this.#open.sockets.get(id) as Connection<T> | undefined;
  }

  broadcast(message: WebSocketMessage, without: string[] = []): void {
    this.#open.sockets.broadcast(message, without);
  }

  /** Returns up to nine tags of a connection, in addition to its id. */
  getConnectionTags(
    _connection: Connection,
    _context: ConnectionContext,
  ): string[] | Promise<string[]> {
    return [];
  }

  shouldConnectionBeReadonly(_connection: Connection, _context: ConnectionContext): boolean {
    return false;
  }

  /**
   * Override this method and return false to send the connection only the frames that your code sends, and no state
   * updates.
   */
  shouldSendProtocolMessages(_connection: Connection, _context: ConnectionContext): boolean {
    return true;
  }

  setConnectionReadonly(connection: Connection, isReadonly = true): void {
    const known = connection as AgentConnection;
    known.kept.isReadonly = isReadonly;
    this.#open.sockets.save(known);
  }

  isConnectionReadonly(connection: Connection): boolean {
    return (connection as AgentConnection).kept.isReadonly;
  }

  isConnectionProtocolEnabled(connection: Connection): boolean {
    return (connection as AgentConnection).kept.hasProtocol;
  }

  /**
   * Calls a method after a number of seconds (up to 100 years), at a time (up to 9999-12-31T00:00Z), or by a cron
   * expression (UTC).
   */
  async schedule<T = unknown>(
    when: Date | string | number,
    callback: MethodName<this>,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    return this.#open.schedules.add(when, callback, payload, options) as Schedule<T>;
  }

  async scheduleEvery<T = unknown>(
    intervalSeconds: number,
    callback: MethodName<this>,
    payload?: T,
    options?: ScheduleOptions,
  ): Promise<Schedule<T>> {
    return this.#open.schedules.addEvery(
      intervalSeconds,
      callback,
      payload,
      options,
    ) as Schedule<T>;
  }

  async cancelSchedule(id: string): Promise<boolean> {
    return this.#open.schedules.cancel(id);
  }

  getSchedule<T = unknown>(id: string): Schedule<T> | undefined {
    return this.#open.schedules.get(id) as Schedule<T> | undefined;
  }

  async getScheduleById<T = unknown>(id: string): Promise<Schedule<T> | undefined> {
    return this.getSchedule<T>(id);
  }

  getSchedules<T = unknown>(criteria?: ScheduleCriteria): Schedule<T>[] {
    return this.#open.schedules.list(criteria) as Schedule<T>[];
  }

  async listSchedules<T = unknown>(criteria?: ScheduleCriteria): Promise<Schedule<T>[]> {
    return this.getSchedules<T>(criteria);
  }

  /**
   * Enqueues a call of a method. Calls run one after the other, in order. An existing item with this `id` is
   * replaced, and keeps its place.
   */
  async queue<T = unknown>(
    callback: MethodName<this>,
    payload?: T,
    options?: { retry?: RetryOptions; id?: string },
  ): Promise<string> {
    return this.#open.queue.push(callback, payload, options);
  }

  dequeue(id: string): boolean {
    return this.#open.queue.remove(id);
  }

  dequeueAll(): number {
    return this.#open.queue.removeAll();
  }

  dequeueAllByCallback(callback: string): number {
    return this.#open.queue.removeAll(callback);
  }

  /** Starts an item again whose attempts have all failed. */
  retryQueued(id: string): boolean {
    return this.#open.queue.retry(id);
  }

  /** Returns the item with this id, or all items without an id. Failed items are included. */
  getQueue<T = unknown>(id: string): QueueItem<T> | undefined;
  getQueue<T = unknown>(): QueueItem<T>[];
  getQueue<T>(id?: string): QueueItem<T> | undefined | QueueItem<T>[] {
    const { queue } = this.#open;
    if (id === undefined) return queue.list() as QueueItem<T>[];
    return queue.get(id) as QueueItem<T> | undefined;
  }

  /** Returns the items whose payload has this value under `key`. */
  getQueues<T = unknown>(key: string, value: unknown): QueueItem<T>[] {
    const items = this.#open.queue.list() as QueueItem<T>[];
    return items.filter(
      ({ payload }) => (payload as Record<string, unknown> | null)?.[key] === value,
    );
  }

  /** Stores a call of a method under a key or id. A second submission with the same key or id returns the first. */
  async submit<T = unknown>(
    method: MethodName<this>,
    payload?: T,
    options?: SubmitOptions,
  ): Promise<SubmissionReceipt> {
    return this.#open.submissions.submit(method, payload, options);
  }

  async inspectSubmission(id: string): Promise<Submission | undefined> {
    return this.#open.submissions.inspect(id);
  }

  waitForSubmission(id: string, options?: { timeoutMs?: number }): Promise<Submission | undefined> {
    return this.#open.submissions.wait(id, options);
  }

  async listSubmissions(options?: {
    status?: SubmissionStatus;
    limit?: number;
  }): Promise<Submission[]> {
    return this.#open.submissions.list(options);
  }

  async cancelSubmission(id: string): Promise<{ outcome: CancelOutcome }> {
    return { outcome: this.#open.submissions.cancel(id) };
  }

  async deleteSubmission(id: string): Promise<boolean> {
    return this.#open.submissions.delete(id);
  }

  /** Keeps the agent in memory until the returned function is called. */
  async keepAlive(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#open.background(() => promise);
    return () => resolve();
  }

  async keepAliveWhile<T>(work: () => Promise<T>): Promise<T> {
    const release = await this.keepAlive();
    try {
      return await work();
    } finally {
      release();
    }
  }

  retry<T>(
    work: (attempt: number) => T | Promise<T>,
    options?: RetryOptions & { shouldRetry?: (error: unknown, nextAttempt: number) => boolean },
  ): Promise<T> {
    return withRetry(work, options, this.#open.classOptions.retry);
  }

  /** Removes everything that the agent stored. The next caller finds a new agent. */
  async destroy(): Promise<void> {
    this.#open.destroy();
  }

  /**
   * Sends a webhook, signed if there is a secret, and retries it for days. Up to three secrets each add a signature,
   * so that receivers can change from one secret to the next. Resolves with the webhook's id when the webhook is
   * stored.
   */
  async webhook(
    url: string | URL,
    payload: unknown,
    options: { secret?: string | readonly string[] } = {},
  ): Promise<string> {
    const secrets = options.secret === undefined ? [] : [options.secret].flat();
    if (secrets.length > OUTGOING_SECRETS_MAX) {
      const text = `Cannot send a webhook: expected at most ${OUTGOING_SECRETS_MAX} secrets`;
      throw new AgentRefusal("invalid_request", text);
    }
    const id = randomUUID();
    const { link, number, gate } = this.#open;
    await link.operate(
      {
        type: "webhook",
        id,
        url: new URL(url).href,
        payload: typeof payload === "string" ? payload : JSON.stringify(payload ?? null),
        secrets,
      },
      { number, after: gate.after() },
    );
    return id;
  }

  getCallableMethods(): Map<string, CallableMetadata> {
    const found = new Map<string, CallableMetadata>();
    let prototype: object | null = Object.getPrototypeOf(this);
    while (prototype !== null && prototype !== Object.prototype) {
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        const metadata = typeof value === "function" ? callableMetadata(value) : undefined;
        if (metadata !== undefined && !found.has(name)) found.set(name, metadata);
      }
      prototype = Object.getPrototypeOf(prototype);
    }
    return found;
  }

  /** Handles a request to the agent. The runtime calls this method for each request and delivery. */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return this.onRequest(requestOf(input, init));
  }
}
