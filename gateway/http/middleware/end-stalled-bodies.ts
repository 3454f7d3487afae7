/**
 * Closes the connection of a request whose body stops before its end. Otherwise the request would hold its connection
 * and its buffered bytes forever.
 */
import type { Request, RequestHandler } from "express";
import { BODY_STALL_MS } from "../../../schemas/limits.ts";
import { hasBody } from "../has-body.ts";

/** Number of checks in one timeout. So a stalled body is detected at most one interval late. */
const LOOKS = 6;

/** Closes the connection when no byte arrived for this long although the gateway was ready to read. */
export function endStalledBodies(stallMs = BODY_STALL_MS): RequestHandler {
  return (request, response, next) => {
    if (hasBody(request)) watch(request, stallMs, (end) => response.once("close", end));
    next();
  };
}

function watch(request: Request, stallMs: number, onClose: (end: () => void) => void): void {
  const lookMs = stallMs / LOOKS;
  let seen = request.socket.bytesRead;
  let idleMs = 0;
  const timer = setInterval(() => {
    const { bytesRead } = request.socket;
    // A full buffer means that the gateway is the slow side. The reader of the buffer has its own timeouts.
    const isOurs = request.readableLength >= request.readableHighWaterMark;
    idleMs = bytesRead === seen && !isOurs ? idleMs + lookMs : 0;
    seen = bytesRead;
    if (request.complete) clearInterval(timer);
    else if (idleMs >= stallMs) request.destroy();
  }, lookMs);
  timer.unref();
  onClose(() => clearInterval(timer));
}
