/** Bundles an example app into the console, as the import "example-app" of its program. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "esbuild";

const FOLDER = join(import.meta.dirname, "../../deploy/apps/examples/github-events");

/** The files of the example. A change makes a new bundle of the console. */
export const exampleFiles = () =>
  ["trunkline.jsonc", ...globSync("src/**/*.ts", { cwd: FOLDER }).toSorted()].map((name) =>
    join(FOLDER, name),
  );

export const exampleApp: Plugin = {
  name: "example-app",
  setup({ onResolve, onLoad, esbuild }) {
    onResolve({ filter: /^example-app$/ }, ({ path }) => ({ path, namespace: path }));
    onLoad({ filter: /^/, namespace: "example-app" }, async () => {
      const { parse } = await import("jsonc-parser");
      const config = parse(readFileSync(join(FOLDER, "trunkline.jsonc"), "utf8"));
      const { outputFiles } = await esbuild.build({
        entryPoints: [join(FOLDER, config.main)],
        bundle: true,
        write: false,
        format: "esm",
        target: "es2022",
        // Every process of an app has this package.
        external: ["trunkline/agents"],
        // Agents are found by the names of their classes.
        keepNames: true,
      });
      const contents = JSON.stringify({ config, bundle: outputFiles[0]?.text });
      return { contents, loader: "json" };
    });
  },
};
