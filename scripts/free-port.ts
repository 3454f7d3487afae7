/**
 * Finds a free loopback port. It is for a server that is restarted on the same port, so that its clients find it
 * again.
 */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Lowest port to choose. The ports are below the range that systems use for outgoing connections. Otherwise, while
 * the server is down, a client that reconnects again and again could take the server's port, or connect to itself.
 */
const PORT_MIN = 20_000;
const PORT_MAX = 30_000;
const TRIES_MAX = 20;

/** Returns the preferred port if it is free, otherwise another one. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if ((await isClaimed(port)) && (await isFree(port))) return port;
  }
  throw new Error(`Cannot find a free port: ${TRIES_MAX} of ${PORT_MIN} to ${PORT_MAX} are in use`);
}

/** Returns the first of `count` consecutive ports that are free, and reserves all of them. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const first = randomInt(PORT_MIN, PORT_MAX - count);
    let free = 0;
    while (free < count && (await isClaimed(first + free)) && (await isFree(first + free))) free++;
    if (free === count) return first;
  }
  throw new Error(`Cannot find ${count} free ports from ${PORT_MIN} to ${PORT_MAX}`);
}

/**
 * Reserves a port until this process ends, so that no other process that uses this function chooses it before the
 * server listens. Does so by binding the same port number for UDP, which nothing here uses. Returns false if the port
 * is already reserved.
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
  // `error` is undefined if the event is "listening", which has no value.
  const [error] = await Promise.race([failed, once(server, "listening")]);
  if (error !== undefined) return false;
  server.close();
  await once(server, "close");
  return true;
}
