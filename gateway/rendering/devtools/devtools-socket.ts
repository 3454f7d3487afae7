/**
 * One WebSocket of a DevTools session. Forwards its frames to the session's worker and back, no faster than the
 * receiver reads.
 */
import { randomBytes } from "node:crypto";
import type { Response } from "express";
import type { WebSocket } from "ws";
import { CDP_MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import {
  DEVTOOLS_MESSAGE_BYTES_MAX,
  DEVTOOLS_UNREAD_BYTES_MAX,
} from "../../../schemas/rendering/devtools-limits.ts";
import { linkSubjects } from "../../../schemas/rendering/devtools-worker.ts";
import { UnreadBytes } from "../../http/unread-bytes.ts";
import { upgradeOf } from "../../http/upgrade-requests.ts";
import type { DevtoolsBus, Link } from "./devtools-bus.ts";
import type { DevtoolsSessions, SessionOf } from "./devtools-sessions.ts";

/**
 * Maximum bytes from one client that its worker has not processed yet. Above this limit the gateway pauses reading
 * from the client's socket.
 */
const UNTAKEN_BYTES_MAX = 1024 * 1024;
/** Interval between pings. A client that disappears without closing its socket is detected after two intervals. */
const PING_MS = 15_000;
/** Interval at which the gateway checks the client's token or address. */
const CHECK_MS = 5_000;
/** The close code of a client whose token was revoked, or whose address has expired. */
const NO_LONGER_VALID = 4_401;
/** Bytes of ids and names that a message of the browser may have in addition to its content. */
const FRAME_BYTES_MORE = 64 * 1024;

/** The messages that clients of this gateway have not read, of all sockets. */
const UNREAD = new UnreadBytes(DEVTOOLS_UNREAD_BYTES_MAX);

export interface SocketOf {
  sessions: DevtoolsSessions;
  bus: DevtoolsBus;
  of: SessionOf;
  targetId?: string | undefined;
  isReadOnly: boolean;
  /** Whether the client's token or live view address is still valid. */
  isStillGood: () => Promise<boolean>;
  /** Milliseconds after which the socket is closed, even if its client is active. */
  endsInMs?: number;
}

/**
 * Connects the client of this request to the session. If the session refuses the client, rejects before the WebSocket
 * is opened.
 */
export async function openSocket(response: Response, parts: SocketOf): Promise<void> {
  const { sessions, bus, of, targetId, isReadOnly } = parts;
  const upgrade = upgradeOf(response, of.accountId);
  const id = randomBytes(16).toString("hex");
  const { toGateway, toWorker } = linkSubjects(id);
  const opened = Promise.withResolvers<WebSocket>();
  const link: Link = bus.openLink({
    ...{ receiveOn: toGateway, sendTo: toWorker },
    frameBytesMax: CDP_MESSAGE_BYTES_MAX + FRAME_BYTES_MORE,
    take: async (frame) => {
      const socket = await opened.promise;
      const cutOff = () => {
        link.end("the client does not read");
        // A close frame would wait behind the unread message, and keep its memory.
        socket.terminate();
      };
      const read = UNREAD.add(of.accountId, frame.length, cutOff);
      await write(socket, frame).finally(read);
    },
    ended({ by, reason }) {
      if (by === "us") return;
      const code = by === "other" ? 1_000 : 1_011;
      void opened.promise.then((socket) => socket.close(code, reason.slice(0, 120)));
    },
  });
  // The client may disconnect before its WebSocket exists, which would then report no close.
  response.req.socket.once("close", () => link.end("the client left"));
  try {
    const asked = { ask: "connect", link: id, isReadOnly } as const;
    await sessions.ask(of, targetId === undefined ? asked : { ...asked, targetId });
  } catch (error) {
    link.end("the session refused the client");
    throw error;
  }
  if (response.req.socket.destroyed) link.end("the client left");
  upgrade.accept(
    (socket) => {
      carry(socket, link, parts);
      opened.resolve(socket);
    },
    { messageBytesMax: DEVTOOLS_MESSAGE_BYTES_MAX },
  );
}

function carry(
  socket: WebSocket,
  link: Link,
  { isStillGood, endsInMs }: Pick<SocketOf, "isStillGood" | "endsInMs">,
): void {
  let isAlive = true;
  const close = () => {
    // Frames that the client sends until it has answered the close have no effect.
    link.end("the client may no longer use the session");
    socket.close(NO_LONGER_VALID, "The token or address is no longer valid");
  };
  const end = endsInMs === undefined ? undefined : setTimeout(close, endsInMs).unref();
  socket.on("message", (data) => {
    link.send(data as Buffer);
    if (link.unsentBytes <= UNTAKEN_BYTES_MAX || socket.isPaused) return;
    socket.pause();
    void link.drained(UNTAKEN_BYTES_MAX / 2).then(() => socket.resume());
  });
  socket.on("pong", () => {
    isAlive = true;
  });
  const pings = setInterval(() => {
    // A paused socket is not read, so its pongs are not received. It must not be terminated for that.
    if (!isAlive && !socket.isPaused) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, PING_MS).unref();
  const checks = setInterval(() => {
    void isStillGood().then(
      (isGood) => isGood || close(),
      () => {}, // Checked again next time.
    );
  }, CHECK_MS).unref();
  socket.on("close", () => {
    clearInterval(pings);
    clearInterval(checks);
    clearTimeout(end);
    link.end("the client left");
  });
}

/** Resolves when the frame was sent, or when the client is gone. */
function write(socket: WebSocket, frame: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.send(frame, { binary: false }, () => resolve());
  });
}
