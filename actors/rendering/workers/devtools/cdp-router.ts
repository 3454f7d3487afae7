/**
 * Shares the one pipe to a browser between its clients and our own code. Every command gets a unique id, and every
 * event is delivered to the owner of its session.
 */
import type { PipeTransport } from "../../lib/browser/pipe-transport.ts";
import { CDP_ERRORS, type CdpMessage, type Json } from "./cdp-message.ts";

interface Outgoing {
  method: string;
  params: Json;
  sessionId?: string | undefined;
}

export class CdpRouter {
  /** Receives events of the browser that belong to no session. Only our own code handles them. */
  onEvent: (method: string, params: Json) => void = () => {};
  readonly #transport: PipeTransport;
  readonly #waiting = new Map<number, (answer: CdpMessage) => void>();
  readonly #owners = new Map<string, (message: CdpMessage) => void>();
  #last = 0;

  constructor(transport: PipeTransport) {
    this.#transport = transport;
    transport.onmessage = (text) => this.#receive(JSON.parse(text));
    transport.onclose = () => this.#rejectAll();
  }

  /** Sends a command. `settle` gets its answer, or an error once the browser has ended. */
  send({ method, params, sessionId }: Outgoing, settle: (answer: CdpMessage) => void): void {
    this.#last = (this.#last % (2 ** 31 - 1)) + 1;
    const id = this.#last;
    this.#waiting.set(id, settle);
    this.#transport.send(JSON.stringify({ id, method, params, sessionId }));
  }

  /** Sends a command of our own code. Rejects with the browser's error. */
  call(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    return new Promise((resolve, reject) => {
      this.send({ method, params, sessionId }, ({ error, result = {} }) => {
        if (error) reject(new CdpError(`${method}: ${error.message}`));
        else resolve(result);
      });
    });
  }

  /** From now on, messages of this session are delivered to `owner`. */
  own(sessionId: string, owner: (message: CdpMessage) => void): void {
    this.#owners.set(sessionId, owner);
  }

  disown(sessionId: string): void {
    this.#owners.delete(sessionId);
  }

  #receive(message: CdpMessage): void {
    if (message.id !== undefined) {
      const settle = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      settle?.(message);
      return;
    }
    const { sessionId, method = "", params = {} } = message;
    if (sessionId === undefined) this.onEvent(method, params);
    else this.#owners.get(sessionId)?.(message);
  }

  #rejectAll(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    const error = { code: CDP_ERRORS.server, message: "The browser has ended" };
    for (const settle of waiting) settle({ error });
  }
}

/** The browser's refusal of a command of our own code. */
export class CdpError extends Error {}
