/** The connection to NATS, with what the runtime needs of it and the client library does not give by itself. */

import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StoredMsg,
} from "@nats-io/jetstream";
import {
  connect,
  credsAuthenticator,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  TimeoutError,
} from "@nats-io/transport-node";
import { BUS_CONNECT_MS, BUS_REQUEST_MS, JETSTREAM_ANSWER_MS } from "../../schemas/limits.ts";
import { readBusAddress } from "./bus-address.ts";

export interface BusOptions {
  /** Of every server, separated by commas; user and password may stand in them. */
  url: string;
  /** Contents of a NATS credentials file. */
  credentials?: string;
  /** Shown by `nats server report connections`. */
  name: string;
}

/** The bus was away while something was asked of it: whether it was done is unknown. */
export class BusLost extends Error {}

/** JetStream's answer where a read finds nothing. */
export const NO_MESSAGE_FOUND = 10037;

export class Bus {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamManager;
  #connected = true;
  /** Rejections of what waits for an answer. (A race with one long-lived promise would keep every loser in memory.) */
  readonly #waiting = new Set<(error: BusLost) => void>();
  readonly #reconnected = new Set<() => void>();

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
    return new Bus(connection, await jetstreamManager(connection, answering));
  }

  constructor(connection: NatsConnection, jetstream: JetStreamManager) {
    this.connection = connection;
    this.jetstream = jetstream;
    void this.#watchStatus();
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Calls back after every reconnection: whatever was published or asked meanwhile is gone. */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /**
   * Asks and waits for one answer. Rejects with BusLost when the connection goes while it waits (the library would
   * wait for the timeout), and with the library's RequestError or TimeoutError.
   */
  request(
    subject: string,
    payload: string | Uint8Array,
    options: { headers?: MsgHdrs; timeoutMs?: number } = {},
  ): Promise<Msg> {
    const { headers, timeoutMs: timeout = BUS_REQUEST_MS } = options;
    return this.whileConnected(() =>
      this.connection.request(subject, payload, { timeout, ...(headers && { headers }) }),
    );
  }

  /**
   * The newest message of a subject, read from the stream's leader; a direct get may answer from the past. Rejects with
   * BusLost when the connection goes meanwhile.
   */
  async readLast(stream: string, subject: string): Promise<StoredMsg | undefined> {
    const giveUpAt = performance.now() + BUS_REQUEST_MS;
    for (;;) {
      try {
        const message = await this.whileConnected(() =>
          this.jetstream.streams.getMessage(stream, { last_by_subj: subject }),
        );
        return message ?? undefined;
      } catch (error) {
        if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return undefined;
        // While a stream has no leader nobody answers, and its next leader has not heard the question.
        if (!(error instanceof TimeoutError) || performance.now() > giveUpAt) throw error;
      }
    }
  }

  /** The first message at or after a sequence that a subject filter lets through; any replica may answer. */
  async readNext(stream: string, filter: string, from: number): Promise<StoredMsg | undefined> {
    const query = { seq: from, next_by_subj: filter };
    return (await this.jetstream.direct.getMessage(stream, query)) ?? undefined;
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
    if (this.connection.isClosed()) return;
    // A drain against a bus that is gone would wait for it for ever.
    await (this.#connected ? this.connection.drain() : this.connection.close());
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type === "disconnect") {
        this.#connected = false;
        const error = new BusLost("Cannot reach the bus: the connection was lost");
        for (const reject of this.#waiting) reject(error);
      }
      if (status.type === "reconnect") {
        this.#connected = true;
        for (const listener of this.#reconnected) listener();
      }
    }
  }
}
