/** What code of apps finds as `node:module`: bundled CommonJS packages ask it for built-in modules. */
import { isBuiltin, builtinModules as realBuiltins } from "node:module";
import { bareName, OPEN_BUILTINS } from "./open-builtins.ts";
import asyncHooks from "./safe-async-hooks.ts";
import safeProcess from "./safe-process.ts";

const getBuiltin = globalThis.process.getBuiltinModule.bind(globalThis.process);

export const builtinModules = realBuiltins.filter((name) => OPEN_BUILTINS.has(bareName(name)));

/** Only what is built in: everything else is in the bundle. */
export function createRequire(_from: unknown) {
  return function require(specifier: string): unknown {
    const name = bareName(specifier);
    if (name === "process") return safeProcess;
    if (name === "async_hooks") return asyncHooks;
    if (!isBuiltin(specifier) || !OPEN_BUILTINS.has(name)) {
      throw new Error(
        `Cannot require "${specifier}": apps may use ${[...OPEN_BUILTINS].join(", ")}`,
      );
    }
    return getBuiltin(specifier as "events");
  };
}

export default { builtinModules, createRequire, isBuiltin };
