/**
 * Starts a server for a test on a loopback address and a port that the system chooses. Closing the server closes all
 * its connections.
 */
import { once } from "node:events";
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type RequestListener,
} from "node:http";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";

export interface LoopbackServer<S extends Server = Server> {
  server: S;
  address: string;
  port: number;
  /** `accepted` counts the connections accepted so far, and `open` those that are open. */
  accepted: () => number;
  open: () => number;
  close: () => Promise<void>;
  [Symbol.asyncDispose]: () => Promise<void>;
}

export function startHttpServer(
  answer: RequestListener,
  address = "127.0.0.2",
): Promise<LoopbackServer<HttpServer>> {
  return listen(createHttpServer(answer), address);
}

export function startTcpServer(
  serve: (socket: Socket) => void,
  address = "127.0.0.2",
): Promise<LoopbackServer> {
  return listen(createTcpServer(serve), address);
}

export async function listen<S extends Server>(
  server: S,
  address: string,
): Promise<LoopbackServer<S>> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    // Ignores errors, because tests that cut connections reset some of them.
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, address);
  await once(server, "listening");
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    server,
    address,
    port,
    accepted: () => accepted,
    open: () => sockets.size,
    close,
    [Symbol.asyncDispose]: close,
  };
}
