/** `node:module` for app code. Bundled CommonJS packages use it to load built-in modules. */
import { isBuiltin, builtinModules as realBuiltins } from "node:module";
import { bareName, OPEN_BUILTINS, readSpecifier } from "../../../schemas/apps/open-builtins.ts";
import { closedBuiltin } from "./closed-builtins.ts";
import asyncHooks from "./safe-async-hooks.ts";
import safeProcess from "./safe-process.ts";

const getBuiltin = globalThis.process.getBuiltinModule.bind(globalThis.process);

export const builtinModules = realBuiltins.filter((name) => OPEN_BUILTINS.has(bareName(name)));

/** `require` loads built-in modules only, because all other code is in the bundle. */
export function createRequire(_from: unknown) {
  return function require(specifier: string): unknown {
    const { module, name, importer } = readSpecifier(specifier);
    if (!isBuiltin(module)) {
      throw new Error(`Cannot require "${specifier}": it is not in the bundle`);
    }
    if (name === "process") return safeProcess;
    if (name === "async_hooks") return asyncHooks;
    if (name === "module") return safeModule;
    if (!OPEN_BUILTINS.has(name)) return closedBuiltin(name, importer);
    return getBuiltin(`node:${name}` as "node:events");
  };
}

const safeModule = { builtinModules, createRequire, isBuiltin };
export default safeModule;
export { isBuiltin };
