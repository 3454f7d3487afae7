/**
 * Questions of one connection, each with one answer. The library's own (3.4.0) makes three promises, an error and its
 * stack of each, of which a busy host has thousands a second.
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
  resolve(answer: Msg): void;
  reject(error: Error): void;
}

export class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  /** By the last token of where it is answered. */
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

  /** Rejects with the library's RequestError where nobody listens, TimeoutError, and what `rejectAll` is given. */
  ask(
    subject: string,
    payload: string | Uint8Array,
    { headers, timeoutMs }: { headers?: MsgHdrs | undefined; timeoutMs: number },
  ): Promise<Msg> {
    return new Promise((resolve, reject) => {
      this.#lastNumber += 1;
      const number = this.#lastNumber;
      const late = () => {
        this.#asked.delete(number);
        reject(new TimeoutError());
      };
      const reply = `${this.#inbox}.${number}`;
      this.#connection.publish(subject, payload, { reply, ...(headers && { headers }) });
      const timer = setTimeout(late, timeoutMs);
      this.#asked.set(number, { subject, timer, resolve, reject });
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

  #take(answer: Msg): void {
    const number = Number(answer.subject.slice(this.#inbox.length + 1));
    const asked = this.#asked.get(number);
    // The request was given up.
    if (!asked) return;
    this.#asked.delete(number);
    clearTimeout(asked.timer);
    if (answer.headers?.code === 503 && answer.data.length === 0) {
      const cause = new NoRespondersError(asked.subject);
      asked.reject(new RequestError(cause.message, { cause }));
    } else asked.resolve(answer);
  }
}
