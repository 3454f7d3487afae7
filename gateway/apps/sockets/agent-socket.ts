/** One socket of an agent. Sends the client's frames to the agent in order, and the agent's frames to the client. */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { callsOf } from "../../../actors/runtime/calls/call-places.ts";
import {
  agent,
  type Connection,
  type Frame,
  type SocketClose,
} from "../../../schemas/apps/agent.ts";
import type { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { AGENT_TURN_MS_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { UnreadBytes, UnreadClient } from "../../http/unread-bytes.ts";
import { SocketReader } from "./socket-reader.ts";

/** Limit of the bytes of frames in one call to the agent, as JSON. The largest frame fits, escaped or as base64. */
const SOCKET_CALL_BYTES_MAX = 800_000;
/**
 * Limit of the bytes that a client has sent and its agent has not handled. Above it, the gateway stops reading the
 * socket.
 */
const SOCKET_UNREAD_BYTES_MAX = 1_000_000;
/** Memory of one frame in addition to its bytes, about. */
const FRAME_BYTES_MORE = 512;
/**
 * Time limit of one call to the agent, whose host may have failed or may be handing over the agent. Then the socket
 * is closed.
 */
const SOCKET_CALL_MS_MAX = 60_000;
/**
 * If a batch of frames takes longer than this, the socket's next batch is sent concurrently. The time is too short
 * for a person to notice, but longer than most batches take.
 */
const SOCKET_BESIDE_MS = 20;
/**
 * Limit of the concurrent batches of one socket. Each batch is one turn of the agent, for which at most
 * AGENT_TURNS_MAX turns wait.
 */
export const SOCKET_BATCHES_MAX = 16;

export interface AgentSocketParts {
  actors: Pick<ActorClient, "call">;
  socket: WebSocket;
  /** The stream that the socket writes to. */
  stream: Duplex;
  accountId: string;
  /** The agent's key. */
  key: string;
  connection: Connection;
  /** The bytes of the sockets of all accounts, of which each has a limit. */
  unread: UnreadBytes;
}

/**
 * Close codes as clients with reconnection interpret them: they reconnect after 1011 and 1013, but not after 4xxx.
 */
const GONE = { code: 4404, reason: "There is no such agent any more" };
const FAILED = { code: 1011, reason: "The agent does not answer" };
/** The error itself goes only to the app's log. */
const THROWN = { code: 1011, reason: "The agent's code failed" };
const BROKEN = { code: 1011, reason: "The agent's app does not start" };
/** Asks the client to reconnect, because the agent no longer knows this socket. */
const LOST = { code: 1012, reason: "The agent has lost this socket" };
const BUSY = { code: 1013, reason: "The agent is busy" };
/** No status was received (RFC 6455, section 7.4.1). This code may not be sent, but agents receive it. */
const NO_STATUS = 1005;
const ABNORMAL = 1006;

export class AgentSocket {
  readonly key: string;
  readonly number: number;
  readonly reader: SocketReader;
  readonly #parts: AgentSocketParts;
  /** Counts the frames that the client has not read, and those that the agent has not handled. */
  readonly #held: UnreadClient;
  readonly #unread: UnreadFrame[] = [];
  #unreadBytes = 0;
  #next = 1;
  #reading: Promise<void> | undefined;
  #connecting: Promise<void> | undefined;
  #isConnected = false;
  #isClosed = false;
  #isAlive = true;
  #hasFailed = false;
  /** True when the agent or its app no longer exists. */
  #isGone = false;
  /** Id of the socket's app, as soon as it is known. */
  #appId: string | undefined;
  /** Ends the calls of the running batches; undefined while none runs. */
  #calls: AbortController | undefined;
  /** The running batches by the number of their first frame, in order. */
  readonly #underWay = new Map<number, Promise<void>>();

  constructor(parts: AgentSocketParts) {
    const { socket, accountId, key, connection, unread } = parts;
    this.#parts = parts;
    this.key = key;
    this.number = connection.number;
    this.#held = unread.client(accountId, () => this.#cutOff());
    this.reader = new SocketReader(socket, parts.stream, this.#held);
    socket.pause();
    socket.on("message", (data, isBinary) => this.#take(data as Buffer, isBinary));
    socket.on("pong", () => {
      this.#isAlive = true;
    });
  }

  /** Notifies the agent of the new socket. Never rejects. */
  connect(request: AppRequest, props: string | undefined): Promise<void> {
    this.#connecting = this.#connect(request, props);
    return this.#connecting;
  }

  /**
   * Called when the socket is closed. Notifies the agent after it has handled all frames of the client, or after
   * AGENT_TURN_MS_MAX. Never rejects.
   */
  async leave(code: number, reason: Buffer): Promise<void> {
    this.#isClosed = true;
    this.reader.drop();
    await this.#connecting;
    // A deleted app may have thousands of sockets. A message for each would try to open its agents again.
    if (!this.#isConnected || this.#isGone) return;
    await this.#read();
    const { connection } = this.#parts;
    await atMost(AGENT_TURN_MS_MAX, Promise.all(this.#underWay.values()));
    const isSilent = code === NO_STATUS || code === ABNORMAL;
    const close: SocketClose = { code, reason: isSilent ? "" : reason.toString() };
    // If the agent cannot be notified now, it learns of the end when it next sends to this socket.
    await this.#tell("disconnect", { connection, close, wasClean: code !== ABNORMAL }).catch(
      () => {},
    );
  }

  /** Ends the socket if its client has not answered the last ping, and otherwise sends a ping. */
  ping(): void {
    const { socket } = this.#parts;
    // While the socket is paused, for example because its agent moves, no pong is read. Then the deadline of the
    // calls to the agent applies.
    if (socket.isPaused) this.#isAlive = true;
    else if (!this.#isAlive) socket.terminate();
    else {
      this.#isAlive = false;
      socket.ping();
    }
  }

  /** Checks whether the agent still knows this socket, and closes the socket if not. Never rejects. */
  async check(): Promise<void> {
    if (!this.#isConnected || this.#isClosed) return;
    try {
      const { connection } = this.#parts;
      await this.#tell("frames", { connection, first: this.#next, frames: [] });
    } catch (error) {
      if (error instanceof ActorError && error.code === "conflict") this.end(error);
    }
  }

  /** Closes the socket if its app was deleted. `id`: the app that now uses the name; absent if none does. */
  checkApp(id: string | undefined): void {
    if (this.#isClosed) return;
    this.#appId ??= id;
    if (id !== undefined && id === this.#appId) return;
    this.#fail(new ActorError("not_found", "Cannot continue: the app was deleted"));
  }

  terminate(): void {
    this.#parts.socket.terminate();
  }

  async #connect(request: AppRequest, props: string | undefined): Promise<void> {
    const { connection, socket } = this.#parts;
    try {
      await this.#tell("connect", { connection, request, ...(props !== undefined && { props }) });
    } catch (error) {
      this.end(error);
      return;
    }
    this.#isConnected = true;
    socket.resume();
  }

  #take(data: Buffer, isBinary: boolean): void {
    const frame = frameOf(data, isBinary);
    const bytes = sizeOf(frame);
    if (this.#hasFailed) return;
    const unread: UnreadFrame = { frame, bytes, release: () => {} };
    this.#unread.push(unread);
    this.#unreadBytes += bytes;
    unread.release = this.#held.hold(bytes + FRAME_BYTES_MORE);
    if (this.#unreadBytes > SOCKET_UNREAD_BYTES_MAX) this.#parts.socket.pause();
    void this.#read();
  }

  /** Resolves when all frames that have arrived by then were sent in batches. */
  #read(): Promise<void> {
    this.#reading ??= this.#drain().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /**
   * Sends batches in order. Frames that arrive while a batch runs are sent in the next batch, after at most
   * SOCKET_BESIDE_MS, unless SOCKET_BATCHES_MAX batches are running.
   */
  async #drain(): Promise<void> {
    while (this.#unread.length > 0) {
      if (this.#underWay.size >= SOCKET_BATCHES_MAX) {
        await Promise.race(this.#underWay.values());
        continue;
      }
      const first = this.#next;
      const batch = this.#leading();
      this.#next += batch.length;
      const told = this.#bring(first, batch);
      this.#underWay.set(first, told);
      await atMost(SOCKET_BESIDE_MS, told);
    }
  }

  /** Sends one batch repeatedly until the agent has handled it. Closes the socket if a call fails. Never rejects. */
  async #bring(first: number, batch: readonly UnreadFrame[]): Promise<void> {
    const { connection, socket } = this.#parts;
    const frames = batch.map(({ frame }) => frame);
    this.#calls ??= new AbortController();
    const { signal } = this.#calls;
    try {
      for (;;) {
        const [settledBefore = first] = this.#underWay.keys();
        const brought = { connection, first, frames, settledBefore };
        const { isPending } = await this.#tell("frames", brought, signal);
        if (!isPending || this.#hasFailed) break;
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#underWay.delete(first);
      if (this.#underWay.size === 0) this.#calls = undefined;
      for (const { bytes, release } of batch) {
        this.#unreadBytes -= bytes;
        release();
      }
      if (!this.#isClosed && this.#unreadBytes <= SOCKET_UNREAD_BYTES_MAX) socket.resume();
    }
  }

  #leading(): UnreadFrame[] {
    let bytes = 0;
    const past = this.#unread.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && bytes > SOCKET_CALL_BYTES_MAX;
    });
    return this.#unread.splice(0, past < 0 ? this.#unread.length : past);
  }

  /**
   * Calls the agent, whose host may have failed or may be handing over the agent. The client notices nothing if the
   * agent answers within SOCKET_CALL_MS_MAX.
   */
  async #tell<N extends SocketEvent>(
    message: N,
    input: z.input<(typeof agent.messages)[N]["input"]>,
    signal?: AbortSignal,
  ): Promise<{ isPending?: boolean | undefined }> {
    const { actors, accountId, key } = this.#parts;
    const options = { deadlineMs: SOCKET_CALL_MS_MAX, ...(signal && { signal }) };
    // The compiler cannot check the union of the three messages, so this cast selects one. Each input is checked by
    // its message's schema.
    const call = () => actors.call(agent, key, message as "frames", input as never, options);
    return await callsOf({ accountId, isVisitor: true }, call);
  }

  /**
   * Ends the socket and drops all of its frames, because the sockets of its account hold too many bytes. A client that
   * does not read gets no close frame, which would wait behind its frames and keep their memory.
   */
  #cutOff(): void {
    const { hasUnread } = this.reader;
    this.reader.drop();
    if (hasUnread) this.terminate();
    const full = new ActorError("busy", "Cannot take more frames: too many wait for agents");
    this.#calls?.abort(full);
    this.#fail(full);
  }

  #fail(error: unknown): void {
    this.#hasFailed = true;
    for (const { bytes, release } of this.#unread.splice(0)) {
      this.#unreadBytes -= bytes;
      release();
    }
    this.end(error);
  }

  /** Closes the socket with the code that tells its client whether to connect again. */
  end(error: unknown): void {
    const close = closeOf(error);
    if (close === GONE) this.#isGone = true;
    this.reader.close(close.code, close.reason);
  }
}

/** Resolves when `work` has, or after this time. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

/** A frame of the client. `release` ends its count. */
interface UnreadFrame {
  frame: Frame;
  bytes: number;
  release: () => void;
}

type SocketEvent = "connect" | "frames" | "disconnect";

function closeOf(error: unknown): SocketClose {
  if (!(error instanceof ActorError)) return FAILED;
  switch (error.code) {
    case "not_found":
      return GONE;
    case "busy":
    case "limit_reached":
      return BUSY;
    case "conflict":
      return LOST;
    case "app_failed":
      return THROWN;
    case "app_broken":
      return BROKEN;
    default:
      return FAILED;
  }
}

const frameOf = (data: Buffer, isBinary: boolean): Frame =>
  isBinary ? { base64: data.toString("base64") } : { text: data.toString("utf8") };

/** Returns the size as JSON, where a control character takes six bytes. */
const sizeOf = (frame: Frame) => Buffer.byteLength(JSON.stringify(frame));
