/** Keeps Node's built-in modules out of a bundle, and names the packages and files that import forbidden ones. */
import { isBuiltin } from "node:module";
import { relative } from "node:path";
import type { OnResolveArgs, Plugin } from "esbuild";
import {
  bareName,
  closedSpecifier,
  OPEN_BUILTINS,
  REPLACED_BUILTINS,
} from "../../schemas/apps/open-builtins.ts";

const USABLE = new Set<string>([...OPEN_BUILTINS, ...REPLACED_BUILTINS]);
const DEFAULT_OF = "default of ";

/**
 * The bundler plugin for built-in modules. A bundle has no `require`. If an older package requires a built-in module,
 * the bundle imports the module and uses its default export as the result of `require`.
 */
export function builtInModules(folder: string): Plugin {
  return {
    name: "built-in modules",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[\w:/]+$/ }, ({ path, kind, importer }) => {
        if (!isBuiltin(path)) return undefined;
        const specifier = specifierOf(bareName(path), importer);
        return kind === "require-call"
          ? { path: specifier, namespace: "required" }
          : { path: specifier, external: true };
      });
      onLoad({ filter: /./, namespace: "required" }, ({ path }) => ({
        contents: `module.exports = require(${JSON.stringify(DEFAULT_OF + path)}).default;`,
      }));
      onResolve({ filter: /^default of node:/ }, ({ path }) => ({
        path: path.slice(DEFAULT_OF.length),
        namespace: "imported",
      }));
      onLoad({ filter: /./, namespace: "imported" }, ({ path }) => ({
        contents: `export { default } from ${JSON.stringify(path)};`,
      }));
      // Keeps the import that the line above generates as an import of an external module.
      onResolve({ filter: /^node:.*\?/, namespace: "imported" }, external);
    },
  };

  function specifierOf(name: string, importer: string): string {
    if (USABLE.has(name) || importer === "") return `node:${name}`;
    return closedSpecifier(name, packageOf(importer) ?? relative(folder, importer));
  }
}

const external = ({ path }: OnResolveArgs) => ({ path, external: true });

/** Returns the name of the package that a file belongs to. Returns undefined for the app's own files. */
function packageOf(file: string): string | undefined {
  const [, name] = /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(file) ?? [];
  return name?.replaceAll("\\", "/");
}
