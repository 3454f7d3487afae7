/**
 * Reads the messages of one consumer in their order, by one request after another. The library's own reading (3.4.0)
 * limits either the messages or the bytes that are on their way. A consumer needs both limits: 256 small messages are
 * few bytes, and 256 large messages more than a connection can take.
 */
import { createInbox, type Msg, type MsgHdrs, nanos } from "@nats-io/transport-node";
import type { Bus } from "../bus.ts";

interface PullOptions {
  stream: string;
  consumer: string;
  /** Limits of one request. A message that is larger than `bytesMax` arrives alone. */
  messagesMax: number;
  bytesMax: number;
  /** How long a request lasts. */
  expiresMs: number;
  heartbeatMs: number;
}

export class OrderedMessage {
  readonly seq: number;
  /** The position of the message among those of its consumer. */
  readonly delivery: number;
  /** Counts the later messages that are stored and that the consumer selects. */
  readonly pending: number;
  readonly #message: Msg;

  /** Reads the sequences from the reply subject (ADR-15), which may begin with a domain. */
  constructor(message: Msg) {
    const tokens = message.reply?.split(".") ?? [];
    const at = tokens.length === 9 ? 5 : 7;
    this.seq = Number(tokens[at] ?? 0);
    this.delivery = Number(tokens[at + 1] ?? 0);
    this.pending = Number(tokens[at + 3] ?? 0);
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  /** Parsed when it is read. */
  get headers(): MsgHdrs | undefined {
    return this.#message.headers;
  }

  string(): string {
    return this.#message.string();
  }

  json(): unknown {
    return this.#message.json();
  }
}

/** Messages that have arrived together, and their bytes as the server counts them. */
interface Arrived {
  messages: OrderedMessage[];
  bytes: number;
}

/** How long a request for a large message lasts. */
export const LARGE_PULL_MS = 50;
/** After this many heartbeats without one, the consumer is silent. */
const SILENT_HEARTBEATS = 2;
// Statuses of a request (ADR-37).
const HEARTBEAT = 100;
const NONE_WAITING = 404;
const EXPIRED = 408;
const CONFLICT = 409;
const NO_RESPONDERS = 503;
const TOO_LARGE = /exceeds maxbytes/i;
const COMPLETED = /batch completed/i;

export class OrderedPulls {
  /** True if no server knew the consumer. */
  isUnheard = false;
  readonly #bus: Bus;
  readonly #options: PullOptions;
  readonly #inbox: string;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #stopped = new AbortController();
  #error: Error | undefined;
  /** Received messages that the reader has not taken yet, and those that it has taken last. */
  #received: Arrived = { messages: [], bytes: 0 };
  #taken: Arrived = { messages: [], bytes: 0 };
  #wake: () => void = () => {};
  /** The number of the last request, which is a part of its reply subject. */
  #request = 0;
  #isOpen = false;
  /** What the open request may still bring. */
  #messagesLeft = 0;
  #bytesLeft = 0;
  /** The next message is larger than `bytesMax`. */
  #isNextLarge = false;
  /** True while a request for a large message waits for its turn. */
  #isWaiting = false;
  /** Ends the turn of a request for a large message. */
  #leave: () => void = () => {};
  #delivered = 0;
  #silences = 0;

  constructor(bus: Bus, options: PullOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#inbox = createInbox(bus.inboxes.answers);
    const subscription = bus.connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => (error ? this.#fail(error) : this.#receive(message)),
    });
    this.#unsubscribe = () => subscription.unsubscribe();
    void subscription.closed.then(() => this.stop());
    this.#timer = setInterval(() => this.#listen(), options.heartbeatMs);
    void this.#pull();
  }

  /** Ends after the messages that have arrived. */
  stop(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort();
    clearInterval(this.#timer);
    this.#leave();
    if (!this.#bus.connection.isClosed()) this.#unsubscribe();
    this.#wake();
  }

  /**
   * Yields the messages, all that have arrived at a time, until `stop`, or until the consumer is silent, is gone or has
   * lost a message. Throws if the server refuses the requests.
   */
  async *read(): AsyncGenerator<OrderedMessage[], void, undefined> {
    for (;;) {
      this.#taken = this.#received;
      this.#received = { messages: [], bytes: 0 };
      if (!this.#isOpen) void this.#pull();
      if (this.#taken.messages.length > 0) yield this.#taken.messages;
      else if (this.#stopped.signal.aborted) break;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#error) throw this.#error;
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.stop();
  }

  /** Sends the next request, unless one is open or the reader is behind. */
  async #pull(): Promise<void> {
    const { stream, consumer, messagesMax, bytesMax, expiresMs, heartbeatMs } = this.#options;
    const [taken, received] = [this.#taken, this.#received];
    const isBehind =
      taken.messages.length + received.messages.length > messagesMax / 2 ||
      taken.bytes + received.bytes > bytesMax / 2;
    if (this.#isOpen || isBehind || this.#stopped.signal.aborted) return;
    this.#isOpen = true;
    this.#silences = 0;
    const isLarge = this.#isNextLarge;
    this.#isNextLarge = false;
    if (isLarge) {
      const { largeMessages } = this.#bus.readLimits;
      this.#isWaiting = true;
      const leave = await largeMessages.take(this.#stopped.signal).catch(() => undefined);
      this.#isWaiting = false;
      this.#silences = 0;
      if (leave === undefined) return;
      // `stop` may have been called after the turn was given.
      if (this.#stopped.signal.aborted) {
        leave();
        return;
      }
      this.#leave = leave;
    }
    this.#request += 1;
    this.#messagesLeft = isLarge ? 1 : messagesMax;
    this.#bytesLeft = isLarge ? Number.POSITIVE_INFINITY : bytesMax;
    // A request for a large message hardly waits, because others wait for their turn. But it waits: after removals, the
    // server may count too few pending messages, and would then refuse every request with `no_wait` immediately.
    const query = isLarge
      ? { batch: 1, expires: nanos(LARGE_PULL_MS) }
      : {
          ...{ batch: messagesMax, max_bytes: bytesMax },
          ...{ expires: nanos(expiresMs), idle_heartbeat: nanos(heartbeatMs) },
        };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    const reply = `${this.#inbox}.${this.#request}`;
    try {
      this.#bus.connection.publish(subject, JSON.stringify(query), { reply });
    } catch {
      this.stop(); // The connection is being closed.
    }
  }

  #ended(): void {
    this.#leave();
    this.#leave = () => {};
    this.#isOpen = false;
    void this.#pull();
  }

  #receive(message: Msg): void {
    this.#silences = 0;
    if (this.#stopped.signal.aborted) return;
    if (message.subject.startsWith(this.#inbox)) {
      this.#takeStatus(message);
      return;
    }
    const ordered = new OrderedMessage(message);
    if (ordered.delivery === this.#delivered + 1) this.#take(ordered, sizeOf(message));
    // A broken route has lost a message.
    else this.stop();
  }

  #take(message: OrderedMessage, bytes: number): void {
    this.#delivered += 1;
    this.#received.messages.push(message);
    this.#received.bytes += bytes;
    this.#messagesLeft -= 1;
    this.#bytesLeft -= bytes;
    this.#wake();
    if (this.#messagesLeft <= 0 || this.#bytesLeft <= 0) this.#ended();
  }

  #takeStatus({ subject, headers }: Msg): void {
    const { code = 0, description = "" } = headers ?? {};
    // A status may also belong to a request that has ended: "Batch Completed" follows its last message.
    const isOfOpen = this.#isOpen && subject === `${this.#inbox}.${this.#request}`;
    // A broken route has lost the newest message.
    const delivered = Number(headers?.get("Nats-Last-Consumer") || 0);
    if (code === HEARTBEAT && delivered > this.#delivered) this.stop();
    if (code === HEARTBEAT || !isOfOpen) return;
    if (code === NO_RESPONDERS) {
      this.isUnheard = true;
      this.stop();
    } else if (code === EXPIRED || code === NONE_WAITING || COMPLETED.test(description))
      this.#ended();
    else if (code === CONFLICT && TOO_LARGE.test(description)) {
      this.#isNextLarge = this.#bytesLeft === this.#options.bytesMax;
      this.#ended();
    } else if (code === CONFLICT) this.stop();
    else this.#fail(new Error(`Cannot read ${this.#options.stream}: ${code} ${description}`));
  }

  /** Stops if the server has sent nothing for an open request. */
  #listen(): void {
    if (!this.#isOpen || this.#isWaiting || this.#bus.isAway) this.#silences = 0;
    else if (++this.#silences > SILENT_HEARTBEATS) this.stop();
  }
}

/**
 * The bytes of a message as the server counts them (ADR-37). The method is not in the library's type. Counting them
 * here would parse the headers.
 */
const sizeOf = (message: Msg) => (message as Msg & { size(): number }).size();
