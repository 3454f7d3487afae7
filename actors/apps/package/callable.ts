/** Which methods of an agent its clients may call. */
import { errorFrame, resultFrame } from "./frames.ts";

export interface CallableMetadata {
  description?: string;
  /** The method gets a `StreamingResponse` as its first argument, and answers by it. */
  streaming?: boolean;
}

type Method = (...args: never[]) => unknown;

const marked = new WeakMap<object, CallableMetadata>();

/** `@callable()` before a method. Also `callable()(Class.prototype.method)` where there are no decorators. */
export function callable(metadata: CallableMetadata = {}) {
  return function mark<T extends Method>(method: T, _context?: unknown): T {
    marked.set(method, metadata);
    return method;
  };
}

export function callableMetadata(method: object): CallableMetadata | undefined {
  return marked.get(method);
}

/** The answer of a streaming method: parts, and an end. */
export class StreamingResponse {
  readonly #send: (frame: string) => void;
  readonly #id: string;
  #isClosed = false;

  constructor(connection: { send(frame: string): void }, id: string) {
    this.#send = (frame) => connection.send(frame);
    this.#id = id;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** False when it has ended already. */
  send(chunk: unknown): boolean {
    if (this.#isClosed) return false;
    this.#send(resultFrame(this.#id, chunk, false));
    return true;
  }

  end(finalChunk?: unknown): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#send(resultFrame(this.#id, finalChunk));
    return true;
  }

  error(message: string): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#send(errorFrame(this.#id, message));
    return true;
  }
}
