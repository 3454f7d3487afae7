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
import { BUS_CHANGE_MS, BUS_REQUEST_MS, JETSTREAM_ANSWER_MS } from "../../../schemas/limits.ts";
import { type Inboxes, inboxesOf, shardOf } from "../../../schemas/subjects.ts";
import { outsideRequests } from "../lib/trace.ts";
import { type ConnectOptions, connectTo } from "./connect-to.ts";
import { firstTwoTokens } from "./first-two-tokens.ts";
import { untilLeaderAnswers } from "./reads/leader-answer.ts";
import { ReadLimits } from "./reads/read-limits.ts";
import { Requests } from "./requests.ts";
import { WriteHold } from "./write-hold.ts";

export interface BusOptions extends ConnectOptions {
  /**
   * The listeners of all connections of this process to the same bus. Messages between these connections do not go
   * through the server.
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
   * While this returns false, messages that this process publishes go through the server, because another process may
   * be the receiver.
   */
  isHere?: () => boolean;
  /** Called when the server refuses the subscription. */
  failed?: (error: Error) => void;
}

/** A subscription: it lasts until `close` or `drain`. After `drain`, messages on their way still arrive. */
export interface BusSubscription {
  close(): void;
  drain(): Promise<void>;
}

/** The bus was unreachable during a request, so it is unknown whether the request was executed. */
export class BusLost extends Error {}

export class Bus {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamManager;
  readonly writeHold: WriteHold;
  readonly requests: Requests;
  readonly inboxes: Inboxes;
  /** The layout of the data on this bus. A program sets it before it calls or hosts actors. */
  layout: DataLayout = FIRST_LAYOUT;
  readonly readLimits = new ReadLimits();
  #connected = true;
  #lostAt = 0;
  #disconnections = 0;
  /** The reject functions of waiting requests. (A race with one long-lived promise would leak the other promises.) */
  readonly #waiting = new Set<(error: BusLost) => void>();
  readonly #disconnected = new Set<() => void>();
  readonly #reconnected = new Set<() => void>();
  #outgoing: [subject: string, payload: string, options: PublishOptions | undefined][] = [];
  /** Callbacks to run at the end of this turn; they may publish more messages. */
  #gatherers: (() => void)[] = [];
  #isTurnEnding = false;
  /** True in a turn that called `publishFirst`: the other messages of the turn must not overtake its message. */
  #isServerFirst = false;
  readonly #listeners: Listeners;
  readonly #subscriptions = new Set<BusSubscription>();

  static async connect(options: BusOptions): Promise<Bus> {
    const inboxes = inboxesOf(options.role);
    const connection = await connectTo(options);
    // Skips the library's request for account information, which fails while JetStream elects a leader.
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
   * True when the connection has been lost for longer than a change of servers takes. Requests survive a shorter
   * loss. If processes reported a shorter loss, load balancers would remove all processes of one server at the same
   * time without need.
   */
  get isMissing(): boolean {
    return !this.#connected && performance.now() - this.#lostAt > BUS_CHANGE_MS;
  }

  /** The id of the server to which this client is connected. */
  get server(): string {
    return this.connection.info?.server_id ?? "";
  }

  shardOf(address: string): number {
    return shardOf(address, this.layout.shards);
  }

  /** How often the connection was lost. Each loss invalidates the state that belongs to one connection. */
  get disconnections(): number {
    return this.#disconnections;
  }

  /** True while published messages are lost and publishing may throw. */
  get isAway(): boolean {
    return !this.#connected || this.connection.isDraining() || this.connection.isClosed();
  }

  /** Calls the listener at each loss of the connection. Returns a function that removes the listener. */
  onDisconnect(listener: () => void): () => void {
    this.#disconnected.add(listener);
    return () => this.#disconnected.delete(listener);
  }

  /** Calls the listener after each reconnection. Messages and requests during the disconnection are lost. */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /**
   * Publishes at the end of this turn of the event loop, together with all other messages of the turn, because one
   * write to the socket costs as much as handling one message. While the bus is away, only listeners in this process
   * receive the messages.
   */
  publish(subject: string, payload: string, options?: PublishOptions): void {
    this.#outgoing.push([subject, payload, options]);
    this.#publishAtEnd();
  }

  /**
   * Publishes immediately, and only through the server. The other messages of this turn follow it through the server.
   * So every process, including this one, receives this message before the others.
   */
  publishFirst(subject: string, payload: string): void {
    if (this.isAway) return;
    this.connection.publish(subject, payload);
    this.#isServerFirst = true;
    this.#publishAtEnd();
  }

  /**
   * Calls `gather` once, at the end of this turn of the event loop, before the messages of the turn are published.
   * `gather` may publish more messages.
   */
  beforePublishing(gather: () => void): void {
    this.#gatherers.push(gather);
    this.#publishAtEnd();
  }

  /**
   * Listens to all messages on subjects below `name`, which has two tokens. While `isHere` returns true, messages
   * that this process publishes bypass the server, so other processes that listen there do not receive them.
   */
  hearBelow(
    name: string,
    receive: (message: ReceivedMessage) => void,
    { isHere = () => true, failed }: ListenOptions = {},
  ): BusSubscription {
    return this.#listen(name, { receive, isHere }, failed);
  }

  /**
   * Answers all requests on subjects below `name`, which has two tokens. Requests that this process sends with `ask`
   * do not go through the server. Requester and responder then share the same bytes, so neither may change them.
   */
  answerBelow(name: string, answer: (question: BusRequest) => void): BusSubscription {
    return this.#listen(name, { answer, isHere: () => true });
  }

  /** Sends a request. The request does not go through the server if this process answers on its subject. */
  async ask(subject: string, data: Uint8Array = Empty): Promise<Uint8Array> {
    const { answer } = this.#listeners.get(firstTwoTokens(subject)) ?? {};
    // A request that is too large goes to the server, which refuses it, even if this process would answer.
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
   * Reads the newest message of a subject from the stream's leader, because a direct get may return an older message.
   * Rejects with BusLost if the connection is lost meanwhile.
   */
  readLast(stream: string, subject: string): Promise<StoredMsg | undefined> {
    return this.#readOfLeader(stream, { last_by_subj: subject });
  }

  /**
   * Lists the subjects that a stream holds, from its leader. A listing that takes several requests may miss subjects
   * if the stream changes meanwhile.
   */
  async subjectsOf(stream: string, filter: string): Promise<string[]> {
    const { state } = await this.whileConnected(() =>
      this.jetstream.streams.info(stream, { subjects_filter: filter }),
    );
    return Object.keys(state.subjects ?? {});
  }

  /** Reads the first message at or after a sequence whose subject matches the filter. Any replica may answer. */
  async readNext(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return (await this.jetstream.direct.getMessage(stream, query)) ?? undefined;
  }

  /** Reads the same message as `readNext`, but from the stream's leader. */
  readNextOfLeader(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return this.#readOfLeader(stream, query);
  }

  /** Runs the request. Rejects with BusLost immediately if the bus is away, or as soon as the connection is lost. */
  whileConnected<T>(ask: () => Promise<T>): Promise<T> {
    if (!this.#connected) return Promise.reject(new BusLost("Cannot reach the bus: disconnected"));
    return new Promise((resolve, reject) => {
      const asked = ask();
      this.#waiting.add(reject);
      asked.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /**
   * Flushes and closes the connection. Handlers that still run can send no answer afterwards, so wait for them first.
   */
  async close(): Promise<void> {
    for (const listening of this.#subscriptions) listening.close();
    if (this.connection.isClosed()) return;
    this.#publishAll();
    // While disconnected, a drain would wait for ever, so there is none. A drain fails if the connection is lost
    // meanwhile.
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
