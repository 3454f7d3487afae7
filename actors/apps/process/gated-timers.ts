/**
 * Timers for agents' code. If a timer fires while its agent's input gate is closed, its callback waits until the gate
 * opens.
 */

import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import { promisify } from "node:util";
import { capturedContext, running } from "../package/current-agent.ts";

type Start = (callback: (...args: unknown[]) => void, ...rest: unknown[]) => object;
type Clear = (timer: unknown) => void;

/**
 * Replaces Node's timers, both the globals and those of the timer modules. The platform itself uses native-timers.ts.
 */
export function replaceTimers(put: (name: string, value: unknown) => void): void {
  const cleared = new WeakSet<object>();
  const replace = (name: string, value: unknown) => {
    put(name, value);
    Object.assign(timers, { [name]: value });
  };
  for (const name of ["setTimeout", "setInterval", "setImmediate"] as const) {
    replace(name, gated(name, timers[name] as unknown as Start, cleared));
  }
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"] as const) {
    replace(name, clearing(timers[name] as Clear, cleared));
  }
  replacePromises();
  syncBuiltinESMExports();
}

function gated(name: string, start: Start, cleared: WeakSet<object>) {
  const replaced = (callback: (...args: unknown[]) => void, ...rest: unknown[]) => {
    const { open, block } = running() ?? {};
    if (open === undefined || typeof callback !== "function") return start(callback, ...rest);
    const inContext = capturedContext();
    const timer = start(
      (...args) => {
        const fire = () => {
          if (!cleared.has(timer)) inContext(() => Reflect.apply(callback, timer, args));
        };
        open.inputs.pass(fire, block);
      },
      ...rest,
    );
    return timer;
  };
  Object.defineProperty(replaced, "name", { value: name });
  // `promisify(setTimeout)` must return the function of node:timers/promises, as in Node.
  if (name !== "setInterval") {
    const promised = (...args: never[]) =>
      (timersPromises[name as "setTimeout"] as (...args: never[]) => unknown)(...args);
    Object.defineProperty(replaced, promisify.custom, { enumerable: true, value: promised });
  }
  return replaced;
}

/**
 * Clears a timer, even if its callback waits at the gate. Code may also pass a timer's number instead of the timer.
 */
function clearing(clear: Clear, cleared: WeakSet<object>): Clear {
  return (timer) => {
    if (typeof timer === "object" && timer !== null) cleared.add(timer);
    clear(timer);
  };
}

function replacePromises(): void {
  const { setTimeout, setImmediate, scheduler } = timersPromises;
  const through = <Args extends unknown[], T>(wait: (...args: Args) => Promise<T>) =>
    function waitAtGate(...args: Args): Promise<T> {
      const { open, block } = running() ?? {};
      const waited = wait(...args);
      if (open === undefined) return waited;
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      waited.then(
        (value) => open.inputs.pass(() => resolve(value), block),
        (error: unknown) => open.inputs.pass(() => reject(error), block),
      );
      return promise;
    };
  Object.assign(timersPromises, {
    setTimeout: through(setTimeout),
    setImmediate: through(setImmediate),
  });
  Object.assign(scheduler, {
    wait: through(scheduler.wait.bind(scheduler)),
    yield: through(scheduler.yield.bind(scheduler)),
  });
}
