/** The connection to NATS, with the parts that the runtime needs and the client library lacks. */

import {
  type JetStreamManager,
  jetstreamManager,
  type MsgRequest,
  type StoredMsg,
} from "@nats-io/jetstream";
import {
  Empty,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  PermissionViolationError,
  type PublishOptions,
  TimeoutError,
} from "@nats-io/transport-node";
import { type DataLayout, FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import {
  BUS_CHANGE_MS,
  BUS_REQUEST_MS,
  JETSTREAM_ANSWER_MS,
  SHARD_STARTS_MAX,
} from "../../../schemas/limits.ts";
import { type Inboxes, inboxesOf, shardOf } from "../../../schemas/subjects.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { outsideRequests } from "../lib/trace.ts";
import { type ConnectOptions, connectTo } from "./connect-to.ts";
import { firstTwoTokens } from "./first-two-tokens.ts";
import { untilLeaderAnswers } from "./leader-answer.ts";
import { Requests } from "./requests.ts";
import { WriteHold } from "./write-hold.ts";

export interface BusOptions extends ConnectOptions {
  /**
   * The listeners of all connections of this process to the same bus. Messages between them do not go by the server.
   */
  listeners?: Listeners;
}

/** Listeners by the first two tokens of their subjects. */
export type Listeners = Map<string, Listener>;

interface Listener {
  receive?: (message: ReceivedMessage) => void;
  answer?: (question: BusRequest) => void;
  isHere: () => boolean;
}

/** A message that a listener receives, from the server or from this process. */
export type ReceivedMessage = Pick<Msg, "subject" | "reply" | "headers" | "string">;

/** A request that waits for its answer, from the server or from this process. */
export type BusRequest = Pick<Msg, "subject" | "data" | "string"> & {
  respond(answer?: Uint8Array): unknown;
};

interface ListenOptions {
  /**
   * While it returns false, messages of this process also go through the server, because another process may be their
   * receiver.
   */
  isHere?: () => boolean;
  /** The server refuses the subscription. */
  failed?: (error: Error) => void;
}

/** A subscription until it is closed or drained. After a drain, messages on their way from the server still arrive. */
export interface BusSubscription {
  close(): void;
  drain(): Promise<void>;
}

/** The bus was away during a request: whether it was done is unknown. */
export class BusLost extends Error {}

export { NO_MESSAGE_FOUND } from "./leader-answer.ts";

export class Bus {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamManager;
  readonly writeHold: WriteHold;
  readonly requests: Requests;
  readonly inboxes: Inboxes;
  /** The layout of the data on this bus. A program sets it before it calls or hosts actors. */
  layout: DataLayout = FIRST_LAYOUT;
  /** Readers of shards that begin at a time. */
  readonly readerStarts = new Semaphore(SHARD_STARTS_MAX);
  #connected = true;
  #lostAt = 0;
  #disconnections = 0;
  /** Rejections of requests that wait. (A race with one long-lived promise would keep every loser in memory.) */
  readonly #waiting = new Set<(error: BusLost) => void>();
  readonly #disconnected = new Set<() => void>();
  readonly #reconnected = new Set<() => void>();
  #outgoing: [subject: string, payload: string, options: PublishOptions | undefined][] = [];
  /** Callbacks that may publish more in this turn. */
  #gatherers: (() => void)[] = [];
  #isTurnEnding = false;
  /** True in a turn whose messages must not overtake one that went to the server at once. */
  #isServerFirst = false;
  readonly #listeners: Listeners;
  readonly #subscriptions = new Set<BusSubscription>();

  static async connect(options: BusOptions): Promise<Bus> {
    const inboxes = inboxesOf(options.role);
    const connection = await connectTo(options);
    // A request for the account would fail here while JetStream elects a leader.
    const answering = { checkAPI: false, timeout: JETSTREAM_ANSWER_MS };
    const jetstream = await jetstreamManager(connection, answering);
    return new Bus(connection, jetstream, { ...options, inboxes });
  }

  constructor(
    connection: NatsConnection,
    jetstream: JetStreamManager,
    {
      listeners = new Map(),
      inboxes = inboxesOf(undefined),
    }: { listeners?: Listeners; inboxes?: Inboxes } = {},
  ) {
    this.connection = connection;
    this.jetstream = jetstream;
    this.inboxes = inboxes;
    this.#listeners = listeners;
    this.requests = new Requests(connection, inboxes.answers);
    this.writeHold = new WriteHold(connection);
    const closed = new BusLost("Cannot reach the bus: the connection is closed");
    void connection.closed().then(() => this.requests.rejectAll(closed));
    void this.#watchStatus();
  }

  get connected(): boolean {
    return this.#connected;
  }

  /**
   * True when the connection has been lost for longer than a change of servers takes. Requests survive a short loss. If
   * processes reported it, load balancers would leave all processes of a server at the same time without need.
   */
  get isMissing(): boolean {
    return !this.#connected && performance.now() - this.#lostAt > BUS_CHANGE_MS;
  }

  /** Id of the server that this connection is to. */
  get server(): string {
    return this.connection.info?.server_id ?? "";
  }

  shardOf(address: string): number {
    return shardOf(address, this.layout.shards);
  }

  /** How often the connection was lost. Whatever holds only while the connection lasts ends with each loss. */
  get disconnections(): number {
    return this.#disconnections;
  }

  /** True while published messages are lost and publishing may throw. */
  get isAway(): boolean {
    return !this.#connected || this.connection.isDraining() || this.connection.isClosed();
  }

  /** Calls back whenever the connection is lost. */
  onDisconnect(listener: () => void): () => void {
    this.#disconnected.add(listener);
    return () => this.#disconnected.delete(listener);
  }

  /** Calls back after every reconnection: messages and requests in between are lost. */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /**
   * Publishes at the end of this turn of the loop, with all other messages of the turn: a write to the socket costs as
   * much as handling a message. While the bus is away, messages are dropped unless this process listens to them.
   */
  publish(subject: string, payload: string, options?: PublishOptions): void {
    this.#outgoing.push([subject, payload, options]);
    this.#publishAtEnd();
  }

  /**
   * Publishes at once and to the server alone. Other messages of this turn then go by the server too, behind it. So a
   * process that receives one of those knows that every process, this one too, has received this message before.
   */
  publishFirst(subject: string, payload: string): void {
    if (this.isAway) return;
    this.connection.publish(subject, payload);
    this.#isServerFirst = true;
    this.#publishAtEnd();
  }

  /**
   * Calls back once, at the end of this turn of the loop, before its messages are published. The callback may publish
   * more.
   */
  beforePublishing(gather: () => void): void {
    this.#gatherers.push(gather);
    this.#publishAtEnd();
  }

  /**
   * Listens to all messages below `name`, which has two tokens. Messages of this process do not go by the server, so no
   * other process that listens there receives them.
   */
  hearBelow(
    name: string,
    receive: (message: ReceivedMessage) => void,
    { isHere = () => true, failed }: ListenOptions = {},
  ): BusSubscription {
    return this.#listen(name, { receive, isHere }, failed);
  }

  /**
   * Answers all requests below `name`, which has two tokens. Requests of this process by `ask` do not go by the server.
   * Both sides then share the same bytes, so neither may change them.
   */
  answerBelow(name: string, answer: (question: BusRequest) => void): BusSubscription {
    return this.#listen(name, { answer, isHere: () => true });
  }

  /** Sends a request; it does not go by the server where this process answers below the subject. */
  async ask(subject: string, data: Uint8Array = Empty): Promise<Uint8Array> {
    const { answer } = this.#listeners.get(firstTwoTokens(subject)) ?? {};
    // A request that the server would refuse for its size goes to the server, which refuses it.
    const isSmall = data.length <= (this.connection.info?.max_payload ?? 0);
    if (!answer || !isSmall) return (await this.request(subject, data)).data;
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const timer = setTimeout(() => reject(new TimeoutError()), BUS_REQUEST_MS);
    const respond = (given: Uint8Array = Empty) => resolve(given);
    answer({ subject, data, string: () => Buffer.from(data).toString(), respond });
    return await promise.finally(() => clearTimeout(timer));
  }

  /**
   * Sends a request and waits for one answer. Rejects with BusLost when the connection is lost meanwhile, and with the
   * library's RequestError or TimeoutError.
   */
  request(
    subject: string,
    payload: string | Uint8Array,
    options: { headers?: MsgHdrs; timeoutMs?: number } = {},
  ): Promise<Msg> {
    const { headers, timeoutMs = BUS_REQUEST_MS } = options;
    if (!this.#connected) return Promise.reject(new BusLost("Cannot reach the bus: disconnected"));
    return this.requests.ask(subject, payload, { headers, timeoutMs });
  }

  /**
   * The newest message of a subject, from the stream's leader; a direct get may answer from the past. Rejects with
   * BusLost when the connection is lost meanwhile.
   */
  readLast(stream: string, subject: string): Promise<StoredMsg | undefined> {
    return this.#readOfLeader(stream, { last_by_subj: subject });
  }

  /**
   * The subjects that a stream holds, from its leader. A listing that takes several requests may miss messages that
   * move meanwhile.
   */
  async subjectsOf(stream: string, filter: string): Promise<string[]> {
    const { state } = await this.whileConnected(() =>
      this.jetstream.streams.info(stream, { subjects_filter: filter }),
    );
    return Object.keys(state.subjects ?? {});
  }

  /** The first message at or after a sequence that matches a subject filter; any replica may answer. */
  async readNext(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return (await this.jetstream.direct.getMessage(stream, query)) ?? undefined;
  }

  /** The same, from the stream's leader. */
  readNextOfLeader(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return this.#readOfLeader(stream, query);
  }

  /**
   * Runs the request, but rejects with BusLost at once while the bus is away, or when the connection is lost meanwhile.
   */
  whileConnected<T>(ask: () => Promise<T>): Promise<T> {
    if (!this.#connected) return Promise.reject(new BusLost("Cannot reach the bus: disconnected"));
    return new Promise((resolve, reject) => {
      const asked = ask();
      this.#waiting.add(reject);
      asked.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /** Flushes and closes. Handlers that still run lose their answers, so wait for them first. */
  async close(): Promise<void> {
    for (const listening of this.#subscriptions) listening.close();
    if (this.connection.isClosed()) return;
    this.#publishAll();
    // A drain against a bus that is away would wait for ever; against one that goes away meanwhile it fails.
    if (this.#connected) await this.connection.drain().catch(() => {});
    await this.connection.close();
  }

  #listen(name: string, listener: Listener, failed?: (error: Error) => void): BusSubscription {
    const { receive = () => {}, answer = receive } = listener;
    const subscription = this.connection.subscribe(`${name}.>`, {
      callback: (error, msg) => {
        if (error) failed?.(error);
        else answer(msg);
      },
    });
    this.#listeners.set(name, listener);
    const leave = () => {
      this.#subscriptions.delete(listening);
      if (this.#listeners.get(name) === listener) this.#listeners.delete(name);
    };
    const listening: BusSubscription = {
      close() {
        leave();
        subscription.unsubscribe();
      },
      async drain() {
        leave();
        await subscription.drain();
      },
    };
    this.#subscriptions.add(listening);
    return listening;
  }

  #publishAtEnd(): void {
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    setImmediate(() => outsideRequests(() => this.#publishAll()));
  }

  #publishAll(): void {
    for (const gather of this.#gatherers) gather();
    this.#gatherers = [];
    this.#isTurnEnding = false;
    const outgoing = this.#outgoing;
    this.#outgoing = [];
    const { connection } = this;
    const { isAway } = this;
    const isServerFirst = this.#isServerFirst && !isAway;
    this.#isServerFirst = false;
    for (const [subject, payload, options] of outgoing) {
      const listener = isServerFirst ? undefined : this.#listeners.get(firstTwoTokens(subject));
      if (listener?.receive && listener.isHere()) {
        const { headers, reply } = options ?? {};
        listener.receive({
          ...{ subject, string: () => payload },
          ...(headers && { headers }),
          ...(reply && { reply }),
        });
        continue;
      }
      if (isAway) continue;
      try {
        connection.publish(subject, payload, options);
      } catch {
        // The message is too large for the server. Its sender gives up at the deadline; the other messages are not
        // affected.
      }
    }
  }

  #readOfLeader(stream: string, query: MsgRequest): Promise<StoredMsg | undefined> {
    return untilLeaderAnswers(() =>
      this.whileConnected(() => this.jetstream.streams.getMessage(stream, query)),
    );
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type === "disconnect") {
        this.#connected = false;
        this.#lostAt = performance.now();
        this.#disconnections += 1;
        const error = new BusLost("Cannot reach the bus: the connection was lost");
        for (const reject of this.#waiting) reject(error);
        this.requests.rejectAll(error);
        for (const listener of this.#disconnected) listener();
      }
      if (status.type === "error" && status.error instanceof PermissionViolationError) {
        this.requests.refuse(status.error.subject, status.error);
      }
      if (status.type === "reconnect") {
        this.#connected = true;
        for (const listener of this.#reconnected) listener();
      }
    }
  }
}
