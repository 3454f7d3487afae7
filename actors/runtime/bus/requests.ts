/**
 * Sends the requests of one connection. The library's own requests (3.4.0) create three promises, an error and a
 * stack trace each, and a busy host sends thousands of requests a second.
 */
import { randomBytes } from "node:crypto";
import {
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";

interface Asked {
  subject: string;
  timer: NodeJS.Timeout;
  /** Takes a message of the answer. Returns true if it is the last one. */
  take(answer: Msg): boolean;
  reject(error: Error): void;
}

interface AskOptions {
  headers?: MsgHdrs | undefined;
  timeoutMs: number;
}

export class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  /** Open requests by the last token of their reply subject. */
  readonly #asked = new Map<number, Asked>();
  #lastNumber = 0;

  /** Answers arrive below `prefix`. */
  constructor(connection: NatsConnection, prefix: string) {
    this.#connection = connection;
    this.#inbox = `${prefix}.${randomBytes(9).toString("hex")}`;
    connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, answer) => {
        if (!error) this.#take(answer);
      },
    });
  }

  /**
   * Sends a request. Rejects with the library's RequestError if nobody listens, with TimeoutError, or with the error
   * that `rejectAll` is given.
   */
  ask(subject: string, payload: string | Uint8Array, options: AskOptions): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const take = (answer: Msg) => {
        resolve(answer);
        return true;
      };
      this.#send(subject, payload, options, { take, reject });
    });
  }

  /** The same for an answer of several messages, up to and with the one for which `isLast` returns true. */
  askForMany(
    subject: string,
    payload: string,
    isLast: (message: Msg) => boolean,
    options: AskOptions,
  ): Promise<Msg[]> {
    return new Promise((resolve, reject) => {
      const messages: Msg[] = [];
      const take = (message: Msg) => {
        messages.push(message);
        if (!isLast(message)) return false;
        resolve(messages);
        return true;
      };
      this.#send(subject, payload, options, { take, reject });
    });
  }

  /** Rejects the open requests on a subject to which the user may not publish. */
  refuse(subject: string, cause: Error): void {
    for (const [number, asked] of this.#asked) {
      if (asked.subject !== subject) continue;
      this.#asked.delete(number);
      clearTimeout(asked.timer);
      asked.reject(new RequestError(cause.message, { cause }));
    }
  }

  /** Rejects all open requests. */
  rejectAll(error: Error): void {
    const all = [...this.#asked.values()];
    this.#asked.clear();
    for (const { timer, reject } of all) {
      clearTimeout(timer);
      reject(error);
    }
  }

  #send(
    subject: string,
    payload: string | Uint8Array,
    { headers, timeoutMs }: AskOptions,
    { take, reject }: Pick<Asked, "take" | "reject">,
  ): void {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const late = () => {
      this.#asked.delete(number);
      reject(new TimeoutError());
    };
    const reply = `${this.#inbox}.${number}`;
    this.#connection.publish(subject, payload, { reply, ...(headers && { headers }) });
    const timer = setTimeout(late, timeoutMs);
    this.#asked.set(number, { subject, timer, take, reject });
  }

  #take(answer: Msg): void {
    const number = Number(answer.subject.slice(this.#inbox.length + 1));
    const asked = this.#asked.get(number);
    // The request was given up.
    if (!asked) return;
    if (answer.headers?.code === 503 && answer.data.length === 0) {
      const cause = new NoRespondersError(asked.subject);
      asked.reject(new RequestError(cause.message, { cause }));
    } else if (!asked.take(answer)) return;
    this.#asked.delete(number);
    clearTimeout(asked.timer);
  }
}
