/** Marks the methods of an agent that its clients may call. */
import { errorFrame, resultFrame } from "./frames.ts";

export interface CallableMetadata {
  description?: string;
  /** If true, the method gets a `StreamingResponse` as its first argument and writes its answer to it. */
  streaming?: boolean;
}

type Method = (...args: never[]) => unknown;

const marked = new WeakMap<object, CallableMetadata>();

/** Marks a method. Use `@callable()` before a method, or `callable()(Class.prototype.method)` without decorators. */
export function callable(metadata: CallableMetadata = {}) {
  return function mark<T extends Method>(method: T, _context?: unknown): T {
    marked.set(method, metadata);
    return method;
  };
}

export function callableMetadata(method: object): CallableMetadata | undefined {
  return marked.get(method);
}

/** The answer of a streaming method: a sequence of parts with an end. */
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

  /** Sends a part. Returns false if the answer has already ended. */
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
