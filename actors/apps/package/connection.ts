/**
 * A client's socket as an agent's code sees it. The gateway holds the socket, even while no host has the agent in
 * memory.
 */
import {
  CLOSE_CODES,
  CLOSE_REASON_BYTES_MAX,
  isCloseCode,
  isCloseReason,
} from "../../../schemas/apps/close-codes.ts";

export type WebSocketMessage = string | ArrayBuffer | ArrayBufferView;
/** The name of this type in the public SDK. */
export type WSMessage = WebSocketMessage;

export interface ConnectionContext {
  request: Request;
}

export interface Connection<State = unknown> {
  /** The connection's id, chosen by the client or generated. */
  readonly id: string;
  readonly uri: string;
  /** The agent's name. */
  readonly server: string;
  readonly tags: readonly string[];
  /** The state is stored with the socket, so it remains when the agent moves to another host. */
  readonly state: State | null;
  setState(state: State | null | ((before: State | null) => State | null)): State | null;
  send(message: WebSocketMessage): void;
  close(code?: number, reason?: string): void;
  /** The state of a WebSocket: 1 open, 2 closing, 3 closed. */
  readonly readyState: number;
}

/** The interface of the runtime for a connection. */
interface ConnectionKeeper {
  readonly agentName: string;
  send(connection: AgentConnection, frame: string | Uint8Array, isState: boolean): void;
  close(connection: AgentConnection, code: number, reason: string): void;
  save(connection: AgentConnection): void;
}

export interface KeptConnection {
  gateway: string;
  number: number;
  id: string;
  uri: string;
  tags: string[];
  state: string | null;
  isReadonly: boolean;
  hasProtocol: boolean;
}

const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

export class AgentConnection implements Connection {
  readonly #keeper: ConnectionKeeper;
  readonly kept: KeptConnection;
  #readyState = OPEN;
  #state: unknown;

  constructor(keeper: ConnectionKeeper, kept: KeptConnection) {
    this.#keeper = keeper;
    this.kept = kept;
    this.#state = kept.state === null ? null : JSON.parse(kept.state);
  }

  get id(): string {
    return this.kept.id;
  }

  get uri(): string {
    return this.kept.uri;
  }

  get server(): string {
    return this.#keeper.agentName;
  }

  get tags(): readonly string[] {
    return this.kept.tags;
  }

  get readyState(): number {
    return this.#readyState;
  }

  get state(): never {
    return this.#state as never;
  }

  setState(next: unknown): never {
    const value = typeof next === "function" ? next(this.#state) : next;
    const json = JSON.stringify(value ?? null);
    this.kept.state = value === null || value === undefined ? null : json;
    this.#state = value ?? null;
    this.#keeper.save(this);
    return this.#state as never;
  }

  send(message: WebSocketMessage): void {
    // Messages to a closed connection are lost, as with every WebSocket.
    if (this.#readyState === OPEN) this.#keeper.send(this, toFrame(message), false);
  }

  sendState(frame: string): void {
    if (this.#readyState === OPEN) this.#keeper.send(this, frame, true);
  }

  close(code = 1000, reason = ""): void {
    if (this.#readyState !== OPEN) return;
    if (!isCloseCode(code)) {
      throw new RangeError(`Cannot close: the code is ${code}, expected ${CLOSE_CODES}`);
    }
    if (!isCloseReason(reason)) {
      throw new RangeError(
        `Cannot close: the reason is longer than ${CLOSE_REASON_BYTES_MAX} bytes`,
      );
    }
    this.#readyState = CLOSING;
    this.#keeper.close(this, code, String(reason));
  }

  /** Marks the connection as closed, because the gateway no longer has its socket. */
  end(): void {
    this.#readyState = CLOSED;
  }
}

/**
 * Converts a message to a frame. Copies bytes, because the caller may overwrite its buffer before the frame is sent.
 */
export function toFrame(message: unknown): string | Uint8Array {
  if (typeof message === "string") return message;
  if (message instanceof ArrayBuffer) return new Uint8Array(message.slice(0));
  if (ArrayBuffer.isView(message)) {
    const { buffer, byteOffset, byteLength } = message;
    return new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength));
  }
  throw new TypeError(
    `Cannot send ${typeof message}: expected text or bytes; use JSON.stringify()`,
  );
}
