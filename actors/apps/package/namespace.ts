/** Access to agents: for each class, `env` has a namespace. Its stubs have methods that run on the agent's host. */
import { AGENT_NAME_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import type { Agent } from "./agent.ts";
import { running } from "./current-agent.ts";
import { AgentRefusal } from "./refusal.ts";
import { requestOf } from "./request-of.ts";

export interface AgentId {
  readonly name: string;
  toString(): string;
  equals(other: AgentId): boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: of any environment and state.
type AnyAgent = Agent<any, any>;

/** A stub of a remote agent: it has each public method of the agent as an asynchronous method. */
export type AgentStub<T = AnyAgent> = {
  [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
} & {
  readonly id: AgentId;
  readonly name: string;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
};

/** An accepted upgrade: the gateway connects the socket to this agent. */
interface Acceptance {
  className: string;
  name: string;
  request: Request;
  props: unknown;
}

const acceptances = new WeakMap<Response, Acceptance>();

export const acceptanceOf = (response: unknown): Acceptance | undefined =>
  response instanceof Response ? acceptances.get(response) : undefined;

/** Names that generic code reads from any value. A stub has no methods with these names. */
const NO_METHODS = new Set(["then", "catch", "finally", "toJSON", "constructor", "prototype"]);

export const isAgentName = (name: unknown): name is string =>
  typeof name === "string" &&
  name !== "" &&
  name.length <= AGENT_NAME_CHARS_MAX &&
  name.isWellFormed();

/** Reaches the agents of one class. @internal */
export interface AgentCalls {
  fetch(name: string, props: unknown, request: Request): Promise<Response>;
  invoke(name: string, props: unknown, call: { method: string; args: unknown[] }): Promise<unknown>;
}

export class AgentNamespace<T = AnyAgent> {
  readonly #className: string;
  readonly #calls: AgentCalls;

  /** @internal */
  constructor(className: string, calls: AgentCalls) {
    this.#className = className;
    this.#calls = calls;
  }

  idFromName(name: string): AgentId {
    if (!isAgentName(name)) {
      throw new RangeError(
        `Cannot name an agent: expected 1 to ${AGENT_NAME_CHARS_MAX} characters of Unicode`,
      );
    }
    return Object.freeze({
      name,
      toString: () => name,
      equals: (other: AgentId) => other.name === name,
    });
  }

  get(id: AgentId): AgentStub<T> {
    return this.stub(id.name, undefined);
  }

  getByName(name: string): AgentStub<T> {
    return this.stub(name, undefined);
  }

  /** Returns a stub. If a call through this stub starts the agent, `onStart` gets `props`. */
  stub(name: string, props: unknown): AgentStub<T> {
    const id = this.idFromName(name);
    const known: Record<string, unknown> = {
      id,
      name,
      fetch: (input: string | URL | Request, init?: RequestInit) =>
        this.#fetch(name, props, requestOf(input, init)),
    };
    const target = Object.freeze(Object.create(null) as object);
    return new Proxy(target, {
      get: (_, key) => {
        if (typeof key === "symbol" || NO_METHODS.has(key)) return undefined;
        return (
          known[key] ??
          ((...args: unknown[]) => this.#calls.invoke(name, props, { method: key, args }))
        );
      },
    }) as AgentStub<T>;
  }

  async #fetch(name: string, props: unknown, request: Request): Promise<Response> {
    if (isUpgrade(request)) return this.#accept(name, props, request);
    return this.#calls.fetch(name, props, request);
  }

  #accept(name: string, props: unknown, request: Request): Response {
    if (running()?.isUpgrade !== true) {
      throw new AgentRefusal(
        "invalid_request",
        "Cannot connect: only the app's fetch() accepts sockets",
      );
    }
    const response = new Response(null);
    // Sets the status afterwards, because the web's Response class refuses the status 101.
    Object.defineProperty(response, "status", { value: 101 });
    acceptances.set(response, { className: this.#className, name, request, props });
    return response;
  }
}

export const isUpgrade = (request: Request) =>
  request.headers.get("upgrade")?.toLowerCase() === "websocket";
