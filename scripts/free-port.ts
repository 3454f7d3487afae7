/** Finds a loopback port for a server that clients must find again when it is started anew. */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the range from which systems take the local ports of outgoing connections: a client that connects again and
 * again while the server is down would else one day take the server's port, or meet itself on it.
 */
const PORT_MIN = 20_000;
const PORT_MAX = 30_000;
const TRIES_MAX = 20;

/** The preferred port where nobody listens on it, else another. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if ((await isClaimed(port)) && (await isFree(port))) return port;
  }
  throw new Error(`Cannot find a free port: ${TRIES_MAX} of ${PORT_MIN} to ${PORT_MAX} are in use`);
}

/**
 * Reserves a port until this process ends, so that no other process chooses it before the server listens. The
 * reservation is the same port number for UDP, which nothing here uses. Returns false when it is taken.
 */
async function isClaimed(port: number): Promise<boolean> {
  const socket = createSocket("udp4").unref();
  const failed = once(socket, "error");
  socket.bind(port, "127.0.0.1");
  const [error] = await Promise.race([failed, once(socket, "listening")]);
  if (error !== undefined) socket.close();
  return error === undefined;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const failed = once(server, "error");
  server.listen({ port, host: "127.0.0.1" });
  // "listening" comes with no value, "error" with one.
  const [error] = await Promise.race([failed, once(server, "listening")]);
  if (error !== undefined) return false;
  server.close();
  await once(server, "close");
  return true;
}
