/** The connection to NATS, with what the runtime needs of it and the client library does not give by itself. */

import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type MsgRequest,
  type StoredMsg,
} from "@nats-io/jetstream";
import {
  connect,
  credsAuthenticator,
  Empty,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type PublishOptions,
  TimeoutError,
} from "@nats-io/transport-node";
import { BUS_CONNECT_MS, BUS_REQUEST_MS, JETSTREAM_ANSWER_MS } from "../../../schemas/limits.ts";
import { readBusAddress } from "./bus-address.ts";
import { Requests } from "./requests.ts";

export interface BusOptions {
  /** Of every server, separated by commas; user and password may stand in them. */
  url: string;
  /** Contents of a NATS credentials file. */
  credentials?: string;
  /** Shown by `nats server report connections`. */
  name: string;
  /** Of all connections of this process to the same bus: what one publishes and another hears does not go by the server. */
  listeners?: Listeners;
}

/** By the first two tokens of the subjects they hear. */
export type Listeners = Map<string, Listener>;

interface Listener {
  hear?: (heard: Heard) => void;
  answer?: (question: Question) => void;
  isHere: () => boolean;
}

/** What a listener gets: a message of the server, or one that was published in this process. */
export type Heard = Pick<Msg, "subject" | "reply" | "headers" | "string">;

/** One that waits for its answer: of the server, or of this process. */
export type Question = Pick<Msg, "subject" | "data" | "string"> & {
  respond(answer?: Uint8Array): unknown;
};

interface HearOptions {
  /** While it says no, what this process publishes goes by the server too: somebody else may have to hear it. */
  isHere?: () => boolean;
  /** The server refuses to let it listen. */
  failed?: (error: Error) => void;
}

/** Until it is closed, or drained: then what is on its way from the server still comes. */
export interface Hearing {
  close(): void;
  drain(): Promise<void>;
}

/** The bus was away while something was asked of it: whether it was done is unknown. */
export class BusLost extends Error {}

/** JetStream's answer where a read finds nothing. */
export const NO_MESSAGE_FOUND = 10037;

export class Bus {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamManager;
  #connected = true;
  #disconnections = 0;
  /** Rejections of what waits for an answer. (A race with one long-lived promise would keep every loser in memory.) */
  readonly #waiting = new Set<(error: BusLost) => void>();
  readonly #disconnected = new Set<() => void>();
  readonly #reconnected = new Set<() => void>();
  #said: [subject: string, payload: string, options: PublishOptions | undefined][] = [];
  /** What still has something to say in this turn. */
  #gatherers: (() => void)[] = [];
  #isTurnEnding = false;
  /** Of this turn: nothing that is said in it may overtake what the server was told. */
  #isServerFirst = false;
  readonly #requests: Requests;
  readonly #listeners: Listeners;
  readonly #hearings = new Set<Hearing>();

  static async connect(options: BusOptions): Promise<Bus> {
    const address = readBusAddress(options.url);
    const connection = await connect({
      ...address,
      name: options.name,
      ...(options.credentials && {
        authenticator: credsAuthenticator(new TextEncoder().encode(options.credentials)),
      }),
      // The defaults give up for good after 20 s, and notice a half-open link only after minutes.
      maxReconnectAttempts: -1,
      // Also while passwords are changed: the library would close a connection that is refused twice.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: 100,
      reconnectJitter: 50,
      pingInterval: 2_000,
      maxPingOut: 2,
      timeout: BUS_CONNECT_MS,
      // A stack trace for each request costs a third of them.
      noAsyncTraces: true,
    }).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : cause;
      throw new Error(`Cannot connect to the bus at ${address.servers.join(",")}: ${reason}`, {
        cause,
      });
    });
    // Asking the server for its account at this point would fail where JetStream is still electing a leader.
    const answering = { checkAPI: false, timeout: JETSTREAM_ANSWER_MS };
    const jetstream = await jetstreamManager(connection, answering);
    return new Bus(connection, jetstream, options.listeners);
  }

  constructor(
    connection: NatsConnection,
    jetstream: JetStreamManager,
    listeners: Listeners = new Map(),
  ) {
    this.connection = connection;
    this.jetstream = jetstream;
    this.#listeners = listeners;
    this.#requests = new Requests(connection);
    const closed = new BusLost("Cannot reach the bus: the connection is closed");
    void connection.closed().then(() => this.#requests.rejectAll(closed));
    void this.#watchStatus();
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Id of the server that this connection is to. */
  get server(): string {
    return this.connection.info?.server_id ?? "";
  }

  /** How often the connection was lost: whatever holds only while it lasts, holds no more after one of them. */
  get disconnections(): number {
    return this.#disconnections;
  }

  /** What is published now is lost, and on its way out it may throw. */
  get isAway(): boolean {
    return !this.#connected || this.connection.isDraining() || this.connection.isClosed();
  }

  /** Calls back whenever the connection is lost. */
  onDisconnect(listener: () => void): () => void {
    this.#disconnected.add(listener);
    return () => this.#disconnected.delete(listener);
  }

  /** Calls back after every reconnection: whatever was published or asked meanwhile is gone. */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /**
   * Says it at the end of this turn of the loop, together with all else that is said so: a write to the socket costs as much
   * as handling a message does. What is said while the bus is away is dropped, unless it is heard in this process.
   */
  publish(subject: string, payload: string, options?: PublishOptions): void {
    this.#said.push([subject, payload, options]);
    this.#sayAtEnd();
  }

  /**
   * Says it at once, to the server alone; and what else is published in this turn goes by the server, behind it: whoever is
   * answered so may count on it that others, of this process too, hear of this first.
   */
  publishFirst(subject: string, payload: string): void {
    if (this.isAway) return;
    this.connection.publish(subject, payload);
    this.#isServerFirst = true;
    this.#sayAtEnd();
  }

  /** Calls back once, at the end of this turn of the loop, before what was published in it is said: it may publish more. */
  beforeSaying(gather: () => void): void {
    this.#gatherers.push(gather);
    this.#sayAtEnd();
  }

  /**
   * Hears all that is published below `name`, which has two tokens. What this process publishes does not go round by the
   * server, so nobody else who listens there hears it.
   */
  hearBelow(
    name: string,
    hear: (heard: Heard) => void,
    { isHere = () => true, failed }: HearOptions = {},
  ): Hearing {
    return this.#listen(name, { hear, isHere }, failed);
  }

  /**
   * Answers all that is asked below `name`, which has two tokens. What this process asks by `ask` does not go round by the
   * server: what is handed over then is the same bytes, not a copy of them, so neither side may change them.
   */
  answerBelow(name: string, answer: (question: Question) => void): Hearing {
    return this.#listen(name, { answer, isHere: () => true });
  }

  /** As `request`, but does not go by the server where somebody in this process answers below the subject. */
  async ask(subject: string, data: Uint8Array = Empty): Promise<Uint8Array> {
    const { answer } = this.#listeners.get(firstTwoTokens(subject)) ?? {};
    // What the server would refuse for its size, it refuses from here too.
    const isSmall = data.length <= (this.connection.info?.max_payload ?? 0);
    if (!answer || !isSmall) return (await this.request(subject, data)).data;
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const timer = setTimeout(() => reject(new TimeoutError()), BUS_REQUEST_MS);
    const respond = (given: Uint8Array = Empty) => resolve(given);
    answer({ subject, data, string: () => Buffer.from(data).toString(), respond });
    return await promise.finally(() => clearTimeout(timer));
  }

  /**
   * Asks and waits for one answer. Rejects with BusLost when the connection goes while it waits, and with the library's
   * RequestError or TimeoutError.
   */
  request(
    subject: string,
    payload: string | Uint8Array,
    options: { headers?: MsgHdrs; timeoutMs?: number } = {},
  ): Promise<Msg> {
    const { headers, timeoutMs = BUS_REQUEST_MS } = options;
    if (!this.#connected) return Promise.reject(new BusLost("Cannot reach the bus: disconnected"));
    return this.#requests.ask(subject, payload, { headers, timeoutMs });
  }

  /**
   * The newest message of a subject, read from the stream's leader; a direct get may answer from the past. Rejects with
   * BusLost when the connection goes meanwhile.
   */
  readLast(stream: string, subject: string): Promise<StoredMsg | undefined> {
    return this.#readOfLeader(stream, { last_by_subj: subject });
  }

  /** Those a stream holds, by its leader. A listing of more than the server gives at once may miss what moves meanwhile. */
  async subjectsOf(stream: string, filter: string): Promise<string[]> {
    const { state } = await this.whileConnected(() =>
      this.jetstream.streams.info(stream, { subjects_filter: filter }),
    );
    return Object.keys(state.subjects ?? {});
  }

  /** The first message at or after a sequence that a subject filter lets through; any replica may answer. */
  async readNext(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return (await this.jetstream.direct.getMessage(stream, query)) ?? undefined;
  }

  /** The same, as the stream's leader has it. */
  readNextOfLeader(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return this.#readOfLeader(stream, query);
  }

  /** Does this, but rejects with BusLost at once where the connection is away or goes meanwhile. */
  whileConnected<T>(ask: () => Promise<T>): Promise<T> {
    if (!this.#connected) return Promise.reject(new BusLost("Cannot reach the bus: disconnected"));
    return new Promise((resolve, reject) => {
      const asked = ask();
      this.#waiting.add(reject);
      asked.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /** Flushes what was published and closes. Handlers still running lose their answers: wait for them first. */
  async close(): Promise<void> {
    for (const hearing of this.#hearings) hearing.close();
    if (this.connection.isClosed()) return;
    this.#say();
    // A drain against a bus that is gone would wait for it for ever; against one that goes meanwhile it fails.
    if (this.#connected) await this.connection.drain().catch(() => {});
    await this.connection.close();
  }

  #listen(name: string, listener: Listener, failed?: (error: Error) => void): Hearing {
    const { hear = () => {}, answer = hear } = listener;
    const subscription = this.connection.subscribe(`${name}.>`, {
      callback: (error, msg) => {
        if (error) failed?.(error);
        else answer(msg);
      },
    });
    this.#listeners.set(name, listener);
    const leave = () => {
      this.#hearings.delete(hearing);
      if (this.#listeners.get(name) === listener) this.#listeners.delete(name);
    };
    const hearing: Hearing = {
      close() {
        leave();
        subscription.unsubscribe();
      },
      async drain() {
        leave();
        await subscription.drain();
      },
    };
    this.#hearings.add(hearing);
    return hearing;
  }

  #sayAtEnd(): void {
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    setImmediate(() => this.#say());
  }

  #say(): void {
    for (const gather of this.#gatherers) gather();
    this.#gatherers = [];
    this.#isTurnEnding = false;
    const said = this.#said;
    this.#said = [];
    const { connection } = this;
    const { isAway } = this;
    const isServerFirst = this.#isServerFirst && !isAway;
    this.#isServerFirst = false;
    for (const [subject, payload, options] of said) {
      const listener = isServerFirst ? undefined : this.#listeners.get(firstTwoTokens(subject));
      if (listener?.hear && listener.isHere()) {
        const { headers, reply } = options ?? {};
        listener.hear({
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
        // It is past what the server takes. Whoever waits for it gives up at their deadline; the others are not concerned.
      }
    }
  }

  async #readOfLeader(stream: string, query: MsgRequest): Promise<StoredMsg | undefined> {
    const giveUpAt = performance.now() + BUS_REQUEST_MS;
    for (;;) {
      try {
        const message = await this.whileConnected(() =>
          this.jetstream.streams.getMessage(stream, query),
        );
        return message ?? undefined;
      } catch (error) {
        if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return undefined;
        // While a stream has no leader nobody answers, and its next leader has not heard the question.
        if (!(error instanceof TimeoutError) || performance.now() > giveUpAt) throw error;
      }
    }
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type === "disconnect") {
        this.#connected = false;
        this.#disconnections += 1;
        const error = new BusLost("Cannot reach the bus: the connection was lost");
        for (const reject of this.#waiting) reject(error);
        this.#requests.rejectAll(error);
        for (const listener of this.#disconnected) listener();
      }
      if (status.type === "reconnect") {
        this.#connected = true;
        for (const listener of this.#reconnected) listener();
      }
    }
  }
}

function firstTwoTokens(subject: string): string {
  const end = subject.indexOf(".", subject.indexOf(".") + 1);
  return end < 0 ? subject : subject.slice(0, end);
}
