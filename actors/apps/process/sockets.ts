/** The connections of one agent, stored in its database. The agent sends them actions and receives their frames. */

import type {
  ProcessAction,
  ProcessConnection,
  ProcessRequest,
} from "../../../schemas/apps/app-process.ts";
import { AGENT_CONNECTIONS_MAX } from "../../../schemas/apps/limits.ts";
import { kebabOf } from "../../../schemas/kebab.ts";
import { callableMetadata, StreamingResponse } from "../package/callable.ts";
import { AgentConnection, type KeptConnection, toFrame } from "../package/connection.ts";
import {
  errorFrame,
  identityFrame,
  READONLY_ERROR,
  REJECTED_ERROR,
  readClientFrame,
  resultFrame,
  serversFrame,
  stateErrorFrame,
  stateFrame,
} from "../package/frames.ts";
import { AgentRefusal } from "../package/refusal.ts";
import type { AgentCore } from "./agent-core.ts";
import { checkedTags } from "./connection-tags.ts";
import { toRequest } from "./exchange.ts";
import { methodOf } from "./methods.ts";
import { type BroughtFrames, TakenFrames } from "./taken-frames.ts";

/** Close code 1006 (RFC 6455, section 7.4.1): the socket closed without a close frame. */
const ABNORMAL_CLOSE = 1006;
/** Each refused client would otherwise cause another probe of all gateways. */
const PROBE_PAUSE_MS = 5_000;
/** Close code 1012, service restart (RFC 6455's registry). Clients reconnect; messages sent meanwhile are lost. */
const GIVEN_UP = { code: 1012, reason: "The agent could not reach this socket" };

interface Entry {
  connection: AgentConnection;
  done: TakenFrames;
}

export class Sockets {
  readonly #agent: AgentCore;
  readonly #entries = new Map<string, Entry>();
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(agent: AgentCore) {
    this.#agent = agent;
    for (const row of agent.database.own("SELECT * FROM _trunkline_connections")) {
      const kept: KeptConnection = {
        gateway: String(row.gateway),
        number: Number(row.number),
        id: String(row.id),
        uri: String(row.uri),
        tags: JSON.parse(String(row.tags)) as string[],
        state: row.state === null ? null : String(row.state),
        isReadonly: row.is_readonly === 1,
        hasProtocol: row.has_protocol === 1,
      };
      const done = new TakenFrames(String(row.done));
      this.#entries.set(keyOf(kept), { connection: new AgentConnection(this, kept), done });
    }
    this.#probeGateways();
  }

  get agentName(): string {
    return this.#agent.address.name;
  }

  has(socket: Pick<ProcessConnection, "gateway" | "number">): boolean {
    return this.#entries.has(keyOf(socket));
  }

  get count(): number {
    return this.#entries.size;
  }

  list(tag?: string): AgentConnection[] {
    const all = Array.from(this.#entries.values(), ({ connection }) => connection);
    return tag === undefined ? all : all.filter(({ tags }) => tags.includes(tag));
  }

  get(id: string): AgentConnection | undefined {
    const [first, second] = this.list().filter((connection) => connection.id === id);
    if (second !== undefined) throw new Error(`Cannot get connection ${id}: several have this id`);
    return first;
  }

  send(connection: AgentConnection, frame: string | Uint8Array, isState: boolean): void {
    const { gateway, number } = connection.kept;
    this.#agent.gate.act({ gateway, to: [number], frame, ...(isState && { isState }) });
  }

  close(connection: AgentConnection, code: number, reason: string): void {
    const { gateway, number } = connection.kept;
    this.#agent.gate.act({ gateway, to: [number], close: { code, reason } });
  }

  broadcast(message: unknown, without: readonly string[]): void {
    const frame = toFrame(message);
    const targets = this.list().filter(({ id }) => !without.includes(id));
    this.#sendToAll(targets, (gateway, to) => ({ gateway, to, frame }));
  }

  /** Sends the new state to all connections except its source. */
  broadcastState(json: string, source: AgentConnection | undefined): void {
    const targets = this.list().filter(
      (connection) => connection !== source && connection.kept.hasProtocol,
    );
    const frame = stateFrame(json);
    this.#sendToAll(targets, (gateway, to) => ({ gateway, to, frame, isState: true }));
  }

  save(connection: AgentConnection): void {
    const { gateway, number, state, isReadonly } = connection.kept;
    this.#agent.database.keep(
      "UPDATE _trunkline_connections SET state = ?, is_readonly = ? WHERE gateway = ? AND number = ?",
      state,
      isReadonly ? 1 : 0,
      gateway,
      number,
    );
  }

  async connect(socket: ProcessConnection, wire: ProcessRequest): Promise<void> {
    // The gateway may repeat this message.
    if (this.#entries.has(keyOf(socket))) return;
    if (this.#entries.size >= AGENT_CONNECTIONS_MAX) {
      this.#probeGateways();
      throw new AgentRefusal(
        "limit_reached",
        `Cannot connect: the agent has ${AGENT_CONNECTIONS_MAX} sockets`,
      );
    }
    const request = toRequest(wire);
    const { instance } = this.#agent;
    const connection = new AgentConnection(this, {
      gateway: socket.gateway,
      number: socket.number,
      id: socket.id,
      uri: request.url,
      tags: [socket.id],
      state: null,
      isReadonly: false,
      hasProtocol: true,
    });
    const context = { request };
    await this.#agent.runAs({ connection, request }, async () => {
      connection.kept.tags = [
        socket.id,
        ...checkedTags(await instance.getConnectionTags(connection, context)),
      ];
      connection.kept.isReadonly = instance.shouldConnectionBeReadonly(connection, context);
      connection.kept.hasProtocol = instance.shouldSendProtocolMessages(connection, context);
      this.#add(connection);
      if (connection.kept.hasProtocol) this.#greet(connection);
      try {
        await instance.onConnect(connection, context);
      } catch (error) {
        await this.#agent.report(error, connection);
      }
    });
  }

  /**
   * Handles frames and skips those that were handled before, because the gateway resends a frame when it is unsure.
   * Resolves with true if a handler still runs after SOCKET_BATCH_HELD_MS.
   */
  async frames(socket: ProcessConnection, brought: BroughtFrames): Promise<boolean> {
    const entry = this.#entries.get(keyOf(socket));
    // The agent no longer knows this socket. The gateway closes it, and the client reconnects.
    if (entry === undefined) {
      throw new AgentRefusal("conflict", "Cannot take frames: the agent has no such socket");
    }
    const { inputs } = this.#agent;
    return entry.done.take(brought, (number, frame) => {
      const handled = inputs.deliver(() => this.#handle(entry, number, frame));
      // The handler may run longer than the turn that brought the frame.
      this.#agent.background(() => handled);
      return handled;
    });
  }

  async disconnect(
    socket: ProcessConnection,
    code: number,
    reason: string,
    wasClean: boolean,
  ): Promise<void> {
    const connection = this.#takeOut(socket);
    if (connection !== undefined) await this.#closed(connection, code, reason, wasClean);
  }

  /**
   * Sends each gateway an action for no socket. If the gateway was killed, or is away from the bus for some seconds, the
   * host reports its sockets as gone. Without this, an agent that sends nothing would keep them for ever.
   */
  #probeGateways(): void {
    if (performance.now() - this.#probedAt < PROBE_PAUSE_MS) return;
    this.#probedAt = performance.now();
    for (const gateway of new Set(this.list().map(({ kept }) => kept.gateway))) {
      this.#agent.gate.act({ gateway, to: [], frame: "" });
    }
  }

  #takeOut(socket: Pick<ProcessConnection, "gateway" | "number">): AgentConnection | undefined {
    const key = keyOf(socket);
    const { connection } = this.#entries.get(key) ?? {};
    this.#entries.delete(key);
    connection?.end();
    return connection;
  }

  async #closed(
    connection: AgentConnection,
    code: number,
    reason: string,
    wasClean: boolean,
  ): Promise<void> {
    try {
      await this.#agent.runAs({ connection }, () =>
        this.#agent.instance.onClose(connection, code, reason, wasClean),
      );
    } catch (error) {
      await this.#agent.report(error, connection);
    }
    this.#remove(connection);
  }

  /**
   * Handles sockets that their gateway no longer has and that sent no close frame. With `all`, every socket of the
   * gateway is also closed at the gateway, in case it still exists there.
   */
  async gone(gateway: string, numbers: number[] | "all"): Promise<void> {
    const lost = this.list().filter(
      ({ kept }) =>
        kept.gateway === gateway && (numbers === "all" || numbers.includes(kept.number)),
    );
    if (numbers === "all" && lost.length > 0) {
      const to = lost.map(({ kept }) => kept.number);
      this.#agent.gate.act({ gateway, to, close: GIVEN_UP });
    }
    await Promise.all(
      lost.map(({ kept }) => {
        const connection = this.#takeOut(kept);
        if (connection === undefined) return undefined;
        const { inputs } = this.#agent;
        return inputs.deliver(() => this.#closed(connection, ABNORMAL_CLOSE, "", false));
      }),
    );
  }

  /** Closes all sockets, because the agent is destroyed or does not start. */
  closeAll(code: number, reason: string): void {
    for (const connection of this.list()) connection.close(code, reason);
    this.#entries.clear();
    this.#agent.database.own("DELETE FROM _trunkline_connections");
  }

  async #handle(
    { connection, done }: Entry,
    number: number,
    frame: string | Uint8Array,
  ): Promise<void> {
    const before = this.#agent.database.log.position;
    try {
      await this.#agent.runAs({ connection }, () => this.#take(connection, frame));
    } catch (error) {
      await this.#agent.report(error, connection);
    }
    done.end(number);
    if (this.#agent.database.log.position === before) return;
    const { gateway, number: socket } = connection.kept;
    this.#agent.database.own(
      "UPDATE _trunkline_connections SET done = ? WHERE gateway = ? AND number = ?",
      done.toString(),
      gateway,
      socket,
    );
  }

  async #take(connection: AgentConnection, frame: string | Uint8Array): Promise<void> {
    const read = readClientFrame(frame);
    if (read?.type === "state") return this.#takeState(connection, read.state);
    if (read?.type === "call") return this.#takeCall(connection, read);
    const message = typeof frame === "string" ? frame : new Uint8Array(frame).buffer;
    try {
      await this.#agent.instance.onMessage(connection, message);
    } catch (error) {
      await this.#agent.report(error, connection);
    }
  }

  #takeState(connection: AgentConnection, state: unknown): void {
    if (connection.kept.isReadonly) {
      connection.send(stateErrorFrame(READONLY_ERROR));
      return;
    }
    try {
      this.#agent.state.set(state, connection);
    } catch (error) {
      // The error that the app's check threw goes only to the log, because it may not be meant for clients.
      this.#agent.log("warn", error);
      connection.send(stateErrorFrame(REJECTED_ERROR));
    }
  }

  async #takeCall(
    connection: AgentConnection,
    { id, method, args }: { id: string; method: string; args: unknown[] },
  ): Promise<void> {
    const { instance } = this.#agent;
    const called = methodOf(instance, method);
    const metadata = called === undefined ? undefined : callableMetadata(called);
    if (called === undefined)
      return connection.send(errorFrame(id, `Method ${method} does not exist`));
    if (metadata === undefined)
      return connection.send(errorFrame(id, `Method ${method} is not callable`));
    if (metadata.streaming === true) {
      const stream = new StreamingResponse(connection, id);
      // The method may run for a long time. The frame counts as handled when the method has begun.
      this.#agent.background(async () => {
        try {
          await Reflect.apply(called, instance, [stream, ...args]);
        } catch (error) {
          stream.error(messageOf(error));
        }
      });
      return;
    }
    try {
      connection.send(resultFrame(id, await Reflect.apply(called, instance, args)));
    } catch (error) {
      this.#agent.log("error", error);
      connection.send(errorFrame(id, messageOf(error)));
    }
  }

  #greet(connection: AgentConnection): void {
    const { address, classOptions, state } = this.#agent;
    const json = state.json();
    if (classOptions.sendIdentityOnConnect !== false) {
      connection.send(identityFrame(address.name, kebabOf(address.className), json !== undefined));
    }
    if (json !== undefined) connection.sendState(stateFrame(json));
    connection.send(serversFrame());
  }

  #add(connection: AgentConnection): void {
    const { gateway, number, id, uri, tags, state, isReadonly, hasProtocol } = connection.kept;
    const done = new TakenFrames();
    this.#agent.database.own(
      "INSERT INTO _trunkline_connections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      gateway,
      number,
      id,
      uri,
      JSON.stringify(tags),
      state,
      isReadonly ? 1 : 0,
      hasProtocol ? 1 : 0,
      done.toString(),
    );
    this.#entries.set(keyOf(connection.kept), { connection, done });
  }

  #remove({ kept: { gateway, number } }: AgentConnection): void {
    this.#agent.database.own(
      "DELETE FROM _trunkline_connections WHERE gateway = ? AND number = ?",
      gateway,
      number,
    );
  }

  #sendToAll(
    targets: AgentConnection[],
    action: (gateway: string, to: number[]) => ProcessAction,
  ): void {
    const open = targets.filter(({ readyState }) => readyState === 1);
    for (const [gateway, group] of Map.groupBy(open, ({ kept }) => kept.gateway)) {
      this.#agent.gate.act(
        action(
          gateway,
          group.map(({ kept }) => kept.number),
        ),
      );
    }
  }
}

const keyOf = ({ gateway, number }: { gateway: string; number: number }) => `${number}@${gateway}`;

const messageOf = (error: unknown) =>
  error instanceof Error ? error.message : "Unknown error occurred";
