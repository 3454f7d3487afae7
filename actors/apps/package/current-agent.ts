/** Tracks which agent's code is running and for which request. The information follows calls and awaits. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Agent } from "./agent.ts";
import type { AgentRuntime, Block } from "./agent-runtime.ts";
import type { Connection } from "./connection.ts";

/** The agent and the request that the running code belongs to. @internal */
export interface Running {
  open?: AgentRuntime;
  connection?: Connection | undefined;
  request?: Request | undefined;
  /** The critical section of the agent `open` in which the code runs. */
  block?: Block | undefined;
  /** True in an app's entry if the request asks for an upgrade, so that the app may accept it. */
  isUpgrade?: boolean;
}

export interface CurrentAgent<T> {
  agent: T | undefined;
  connection: Connection | undefined;
  request: Request | undefined;
  email: undefined;
}

const storage = new AsyncLocalStorage<Running>();
// The methods are fixed on the object, because app code could change them on the class and read the values stored
// here.
for (const name of ["getStore", "run", "enterWith", "exit"] as const) {
  Object.defineProperty(storage, name, { value: storage[name].bind(storage) });
}

/** @internal */
export const running = (): Running | undefined => storage.getStore();

/** @internal */
export function runAs<T>(value: Running, work: () => T): T {
  return storage.run(value, work);
}

/** Returns a function that later runs work in the current context. @internal */
export function capturedContext(): <T>(work: () => T) => T {
  const value = storage.getStore();
  return (work) => (value === undefined ? work() : storage.run(value, work));
}

// biome-ignore lint/suspicious/noExplicitAny: the caller knows which of its classes it is.
export function getCurrentAgent<T = Agent<any, any>>(): CurrentAgent<T> {
  const { open, connection, request } = storage.getStore() ?? {};
  return { agent: open?.instance as T | undefined, connection, request, email: undefined };
}
