/** Finds the address of a client outside of the application, for example for a WebSocket. */
import type { IncomingMessage } from "node:http";
import type { Express } from "express";

/**
 * Returns the same address as `request.ip` in the application: if TRUNKLINE_TRUST_PROXY names the sender, the address
 * in X-Forwarded-For. Undefined if the connection is closed.
 */
export function clientAddress(app: Express, request: IncomingMessage): string | undefined {
  const ofApp = Object.create(request, { app: { value: app } });
  return Reflect.get(app.request, "ip", ofApp);
}
