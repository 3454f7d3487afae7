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

/** A command that the browser has not answered yet. */
interface Waiting {
  sessionId: string | undefined;
  settle: (answer: CdpMessage) => void;
}

export class CdpRouter {
  /** Receives events of the browser that belong to no session. Only our own code handles them. */
  onEvent: (method: string, params: Json) => void = () => {};
  readonly #transport: PipeTransport;
  readonly #waiting = new Map<number, Waiting>();
  readonly #owners = new Map<string, (message: CdpMessage) => void>();
  #last = 0;

  constructor(transport: PipeTransport) {
    this.#transport = transport;
    transport.onmessage = (text) => this.#receive(JSON.parse(text));
    transport.onclose = () => this.#reject("The browser has ended", () => true);
  }

  /** Sends a command. `settle` gets its answer, or an error once the command's session or the browser has ended. */
  send({ method, params, sessionId }: Outgoing, settle: (answer: CdpMessage) => void): void {
    this.#last = (this.#last % (2 ** 31 - 1)) + 1;
    const id = this.#last;
    this.#waiting.set(id, { sessionId, settle });
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

  /**
   * From now on, messages of this session are delivered to `owner`. If our own code attached the session, `owner` also
   * gets the browser's report that the session has ended.
   */
  own(sessionId: string, owner: (message: CdpMessage) => void): void {
    this.#owners.set(sessionId, owner);
  }

  disown(sessionId: string): void {
    this.#owners.delete(sessionId);
  }

  #receive(message: CdpMessage): void {
    if (message.id !== undefined) {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      waiting?.settle(message);
      return;
    }
    const { sessionId, method = "", params = {} } = message;
    if (sessionId === undefined) this.onEvent(method, params);
    else this.#owners.get(sessionId)?.(message);
    const { sessionId: detached } = params;
    if (method !== "Target.detachedFromTarget" || typeof detached !== "string") return;
    if (sessionId === undefined) this.#owners.get(detached)?.(message);
    // Libraries of clients reject their commands at the event before, with an error of their own.
    this.rejectOf(detached);
  }

  /** Answers the waiting commands of a session that has ended, because the browser never answers them. */
  rejectOf(sessionId: string): void {
    this.#reject(
      "The session has ended, because its target has closed or was detached",
      (of) => of === sessionId,
    );
  }

  #reject(message: string, isMeant: (sessionId: string | undefined) => boolean): void {
    const error = { code: CDP_ERRORS.server, message };
    const meant = [...this.#waiting].filter(([, { sessionId }]) => isMeant(sessionId));
    for (const [id] of meant) this.#waiting.delete(id);
    for (const [, { settle }] of meant) settle({ error });
  }
}

/** The browser's refusal of a command of our own code. */
export class CdpError extends Error {}
