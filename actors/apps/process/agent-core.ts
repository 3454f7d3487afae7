/** The interfaces between an open agent and its parts. */
import type { AgentAddress } from "../../../schemas/apps/app-names.ts";
import type { StartProcess } from "../../../schemas/apps/app-process.ts";
import type { Agent } from "../package/agent.ts";
import type { AgentRuntime } from "../package/agent-runtime.ts";
import type { AgentConnection } from "../package/connection.ts";
import type { Running } from "../package/current-agent.ts";
import type { AgentDatabase } from "./agent-database.ts";
import type { HostLink } from "./host-link.ts";
import type { InputGate } from "./input-gate.ts";
import type { OutputGate } from "./output-gate.ts";

// biome-ignore lint/suspicious/noExplicitAny: the classes of apps have environments and states of their own.
export type AnyAgent = Agent<any, any>;

export interface AgentCore extends AgentRuntime {
  readonly address: AgentAddress;
  readonly limits: StartProcess["limits"];
  readonly link: HostLink;
  readonly database: AgentDatabase;
  readonly gate: OutputGate;
  readonly inputs: InputGate;
  readonly instance: AnyAgent;
  readonly state: AgentRuntime["state"] & {
    json(): string | undefined;
    set(state: unknown, source: AgentConnection | undefined): void;
  };
  readonly sockets: AgentRuntime["sockets"] & {
    broadcastState(json: string, source: AgentConnection | undefined): void;
  };
  readonly due: { changed(): void };
  /** Resolves when the agent has started. */
  ready(props?: unknown): Promise<void>;
  /** Calls a method by its name. */
  call(name: string, ...args: unknown[]): Promise<unknown>;
  /** Runs `work` as code of this agent. */
  runAs<T>(what: Omit<Running, "open">, work: () => T): T;
  /**
   * Resolves when work that was due at `dueAt` may begin. Before that, makes the start of the work durable, if the
   * work was due before the agent was opened.
   */
  markBegun(dueAt: number): Promise<void>;
  /** Reports an error to the agent's `onError`. */
  report(error: unknown, connection?: AgentConnection): Promise<void>;
  noteIdle(): void;
}
