/** What the modules of apps may import: the platform's own package, open built-in modules, and nothing else. */
import { isBuiltin, registerHooks } from "node:module";
import { bareName, OPEN_BUILTINS } from "./open-builtins.ts";
import "./safe-module.ts";

const PACKAGE = "trunkline/agents";
const ours = (file: string) => new URL(file, import.meta.url).href;
/** In the place of modules that reach further than apps should. */
const REPLACED = new Map([
  ["process", ours("./safe-process.ts")],
  ["async_hooks", ours("./safe-async-hooks.ts")],
  ["module", ours("./safe-module.ts")],
]);

/** All of ours is loaded by then: whatever is imported from here on is imported by the app. */
export function ruleModules(bundle: string): void {
  registerHooks({
    resolve(specifier, _context, next) {
      if (specifier === bundle) return { url: bundle, format: "module", shortCircuit: true };
      if (specifier === PACKAGE) return { url: ours("../package/index.ts"), shortCircuit: true };
      const name = bareName(specifier);
      const replaced = isBuiltin(specifier) ? REPLACED.get(name) : undefined;
      if (replaced !== undefined) return { url: replaced, shortCircuit: true };
      if (isBuiltin(specifier) && OPEN_BUILTINS.has(name)) return next(specifier);
      throw new Error(
        isBuiltin(specifier)
          ? `Cannot import "${specifier}": apps may use ${[...OPEN_BUILTINS, ...REPLACED.keys()].join(", ")}`
          : `Cannot import "${specifier}": it is not in the bundle`,
      );
    },
    load(url, context, next) {
      return next(url, url === bundle ? { ...context, format: "module" } : context);
    },
  });
}
