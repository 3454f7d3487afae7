/**
 * Opens a port of `localhost` for each app on a single machine. Ports give each app an origin of its own, and public
 * client libraries use WebSockets without TLS only for `localhost:…`. The actor `app-ports` stores which app has
 * which port.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:http";
import type { Logger } from "pino";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { APP_PORTS, type AppPort, appPorts, type PortRange } from "../../schemas/apps/app-ports.ts";
import { ActorError } from "../../schemas/errors.ts";
import type { AppOf } from "../http/locals.ts";

/** `localhost` stands for both addresses, and a browser may try either first. */
const LOOPBACK = ["127.0.0.1", "::1"];
const COOKIE_KEY_BYTES = 8;

interface AppPortsParts {
  actors: ActorClient;
  range: PortRange;
  logger: Logger;
  /** Creates a server that handles requests and sockets in the same way as the gateway's main server. */
  makeServer: () => Server;
}

export class AppPorts {
  readonly #parts: AppPortsParts;
  readonly #byPort = new Map<number, AppPort>();
  readonly #byApp = new Map<string, AppPort>();
  readonly #servers = new Map<number, Server[]>();
  readonly #opening = new Map<string, Promise<boolean>>();

  constructor(parts: AppPortsParts) {
    this.#parts = parts;
  }

  portOf(of: AppOf): number | undefined {
    return this.#byApp.get(keyOf(of))?.port;
  }

  appAt(port: number | undefined): AppPort | undefined {
    return port === undefined ? undefined : this.#byPort.get(port);
  }

  get servers(): Server[] {
    return [...this.#servers.values()].flat();
  }

  /** Opens the ports of all apps that have one. An app whose port cannot be opened keeps its other addresses. */
  async openAll(): Promise<void> {
    const { actors, logger } = this.#parts;
    const { ports } = await actors.call(appPorts, APP_PORTS, "list", {});
    for (const { accountId, app } of ports) {
      await this.open({ accountId, app }).catch((error: unknown) => {
        const isFinal =
          error instanceof ActorError && ["conflict", "limit_reached"].includes(error.code);
        if (!isFinal) throw error;
        logger.warn({ app, accountId }, error.message);
      });
    }
  }

  /**
   * Opens the app's port. Resolves with true if it chose a new port, because the app had none in the range. Throws
   * `conflict` if another program uses the app's port.
   */
  open(of: AppOf): Promise<boolean> {
    const key = keyOf(of);
    const opening = this.#opening.get(key) ?? this.#open(of);
    this.#opening.set(key, opening);
    return opening.finally(() => this.#opening.delete(key));
  }

  /** Closes the port of an app whose first deploy was refused, and frees it for others. */
  async release(of: AppOf): Promise<void> {
    this.close(of);
    await this.#parts.actors.send(appPorts, APP_PORTS, "released", of);
  }

  /** Closes the port of a deleted app. The port becomes free for other apps when all data of the app is removed. */
  close(of: AppOf): void {
    const port = this.#forget(of);
    for (const server of this.#servers.get(port ?? 0) ?? []) {
      server.close();
      // A kept connection would allow further requests, which would reach no app.
      server.closeAllConnections();
    }
    this.#servers.delete(port ?? 0);
  }

  async #open({ accountId, app }: AppOf): Promise<boolean> {
    const { actors, range } = this.#parts;
    const cookieKey = randomBytes(COOKIE_KEY_BYTES).toString("hex");
    const taken: number[] = [];
    for (;;) {
      const wanted = { accountId, app, cookieKey, range, taken };
      const { isNew, ...made } = await actors.call(appPorts, APP_PORTS, "assign", wanted);
      this.#know(made);
      if (this.#servers.has(made.port)) return false;
      try {
        await this.#listen(made.port);
        return isNew;
      } catch (error) {
        if (!isTaken(error)) throw error;
        this.#forget(made);
        if (!isNew) throw new ActorError("conflict", takenText(made));
        taken.push(made.port);
      }
    }
  }

  #know(one: AppPort): void {
    this.#forget(one);
    this.#byApp.set(keyOf(one), one);
    this.#byPort.set(one.port, one);
  }

  #forget(of: AppOf): number | undefined {
    const port = this.#byApp.get(keyOf(of))?.port;
    this.#byApp.delete(keyOf(of));
    if (port !== undefined) this.#byPort.delete(port);
    return port;
  }

  async #listen(port: number): Promise<void> {
    const servers: Server[] = [];
    try {
      for (const host of LOOPBACK) {
        const server = this.#parts.makeServer();
        server.listen({ port, host });
        try {
          await once(server, "listening");
          servers.push(server);
        } catch (error) {
          // Many machines have no IPv6.
          if (host === LOOPBACK[0] || isTaken(error)) throw error;
        }
      }
    } catch (error) {
      for (const server of servers) server.close();
      throw error;
    }
    this.#servers.set(port, servers);
  }
}

const keyOf = ({ accountId, app }: AppOf) => `${accountId}.${app}`;

/**
 * Returns whether the port cannot be opened. A port below 1024 may be refused to this process, which is treated like
 * a port in use.
 */
const isTaken = (error: unknown) =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "EADDRINUSE" || error.code === "EACCES");

const takenText = ({ app, port }: AppPort) =>
  `Cannot open port ${port} of app "${app}": another program uses it; end that program and deploy again, or choose other ports by TRUNKLINE_APPS_PORTS`;
