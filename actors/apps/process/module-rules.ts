/** The rules for imports of app modules: only the platform's own package and open built-in modules are permitted. */
import { isBuiltin, registerHooks } from "node:module";
import { OPEN_BUILTINS, readSpecifier } from "../../../schemas/apps/open-builtins.ts";
import { moduleBeside } from "../../../schemas/module-beside.ts";
import { closedNames } from "./closed-builtins.ts";
import "./safe-module.ts";

const PACKAGE = "trunkline/agents";
const AGENTS = moduleBeside(import.meta.url, "../package/index").href;
/** Replacements for modules whose originals give more access than apps may have. */
const REPLACED = new Map([
  ["process", moduleBeside(import.meta.url, "./safe-process").href],
  ["async_hooks", moduleBeside(import.meta.url, "./safe-async-hooks").href],
  ["module", moduleBeside(import.meta.url, "./safe-module").href],
]);
/** The URL scheme of modules that replace closed ones. */
const CLOSED = "trunkline-closed:";
const CLOSED_BUILTINS = moduleBeside(import.meta.url, "./closed-builtins").href;

/**
 * Applies the rules to all later imports. Call it when all code of the platform is loaded, because every later import
 * is treated as an import of the app.
 */
export function ruleModules(bundle: string): void {
  registerHooks({
    resolve(specifier, { parentURL }, next) {
      if (specifier === bundle) return { url: bundle, format: "module", shortCircuit: true };
      if (specifier === PACKAGE) return { url: AGENTS, shortCircuit: true };
      if (specifier === CLOSED_BUILTINS && parentURL?.startsWith(CLOSED)) {
        return { url: CLOSED_BUILTINS, shortCircuit: true };
      }
      const { module, name, importer } = readSpecifier(specifier);
      if (!isBuiltin(module)) {
        throw new Error(`Cannot import "${specifier}": it is not in the bundle`);
      }
      const replaced = REPLACED.get(name);
      if (replaced !== undefined) return { url: replaced, shortCircuit: true };
      if (OPEN_BUILTINS.has(name)) return next(`node:${name}`);
      const url = `${CLOSED}${JSON.stringify([name, importer])}`;
      return { url, format: "module", shortCircuit: true };
    },
    load(url, context, next) {
      if (url.startsWith(CLOSED)) {
        const source = sourceOf(JSON.parse(decodeURIComponent(url.slice(CLOSED.length))));
        return { format: "module", source, shortCircuit: true };
      }
      return next(url, url === bundle ? { ...context, format: "module" } : context);
    },
  });
}

/**
 * Returns the source of a module with the same export names as the closed one, because an import of a missing name
 * fails the whole bundle.
 */
function sourceOf([name, importer]: [name: string, importer: string | null]): string {
  const given = [name, ...(importer === null ? [] : [importer])].map((one) => JSON.stringify(one));
  const names = closedNames(name);
  const exported = names.map((one, index) => `v${index} as ${JSON.stringify(one)}`);
  return `import { closedBuiltin } from ${JSON.stringify(CLOSED_BUILTINS)};
const all = closedBuiltin(${given.join(", ")});
${names.map((one, index) => `const v${index} = all[${JSON.stringify(one)}];`).join("\n")}
export { all as default, ${exported.join(", ")} };`;
}
