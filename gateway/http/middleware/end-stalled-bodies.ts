/** Ends requests whose body stops halfway: each would hold its connection, and what is kept of it, for as long as it likes. */
import type { Request, RequestHandler } from "express";
import { BODY_STALL_MS } from "../../../schemas/limits.ts";

/** How often a body is looked at within that time: it ends late by a part of it at most. */
const LOOKS = 6;

/** Closes the connection of a request of which no byte has come for this long, while the gateway was ready to read. */
export function endStalledBodies(stallMs = BODY_STALL_MS): RequestHandler {
  return (request, response, next) => {
    if (hasBody(request)) watch(request, stallMs, (end) => response.once("close", end));
    next();
  };
}

function hasBody({ headers }: Request): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function watch(request: Request, stallMs: number, onClose: (end: () => void) => void): void {
  const lookMs = stallMs / LOOKS;
  let seen = request.socket.bytesRead;
  let idleMs = 0;
  const timer = setInterval(() => {
    const { bytesRead } = request.socket;
    // A full buffer stops the client: the delay is ours, and whoever reads it has bounds of its own.
    const isOurs = request.readableLength >= request.readableHighWaterMark;
    idleMs = bytesRead === seen && !isOurs ? idleMs + lookMs : 0;
    seen = bytesRead;
    if (request.complete) clearInterval(timer);
    else if (idleMs >= stallMs) request.destroy();
  }, lookMs);
  timer.unref();
  onClose(() => clearInterval(timer));
}
