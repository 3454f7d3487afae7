/** The state of an agent: one JSON value, stored in its database and sent to all connected clients. */
import type { AgentConnection } from "../package/connection.ts";
import { running } from "../package/current-agent.ts";
import { READONLY_ERROR } from "../package/frames.ts";
import type { AgentCore, AnyAgent } from "./agent-core.ts";
import { keepValue, readValue } from "./own-tables.ts";

const KEY = "state";

export class AgentState {
  readonly #agent: AgentCore;
  #json: string | undefined;
  #value: unknown;
  #isRead = false;

  constructor(agent: AgentCore) {
    this.#agent = agent;
  }

  get(): unknown {
    this.#read();
    return this.#value;
  }

  json(): string | undefined {
    this.#read();
    return this.#json;
  }

  /** Sets the state for the agent's own code. Throws if that code runs for a read-only connection. */
  setByCode(state: unknown): void {
    const { connection, open } = running() ?? {};
    const by = open === this.#agent ? (connection as AgentConnection | undefined) : undefined;
    if (by?.kept.isReadonly === true) throw new Error(READONLY_ERROR);
    this.set(state, undefined);
  }

  /** Sets the state for a client, or for the agent's own code if there is no client. */
  set(state: unknown, source: AgentConnection | undefined): void {
    const { instance } = this.#agent;
    // The initial state counts as the previous state, so it must exist when the validation runs.
    this.#read();
    instance.validateStateChange(state, source ?? "server");
    this.#keep(state);
    this.#agent.sockets.broadcastState(this.#json as string, source);
    this.#agent.background(async () => {
      try {
        await instance.onStateChanged(state, source ?? "server");
      } catch (error) {
        await this.#agent.report(error);
      }
    });
  }

  #read(): void {
    if (this.#isRead) return;
    const kept = readValue(this.#agent.database, KEY);
    if (typeof kept === "string") {
      this.#isRead = true;
      this.#json = kept;
      this.#value = JSON.parse(kept);
      return;
    }
    // While the constructor runs, `initialState` is not known yet, so a read in the constructor does not count as the
    // first.
    const instance = this.#agent.instance as AnyAgent | undefined;
    this.#isRead = instance !== undefined;
    const initialState: unknown = instance?.initialState;
    // The initial state may contain a time or an id, so its first value is stored and used from then on.
    if (initialState !== undefined) this.#keep(initialState);
  }

  #keep(state: unknown): void {
    const json = JSON.stringify(state);
    if (json === undefined) throw new TypeError("Cannot set the state: it is no JSON");
    keepValue(this.#agent.database, KEY, json);
    this.#json = json;
    this.#value = state;
    this.#isRead = true;
  }
}
