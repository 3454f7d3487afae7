/** `trunkline types`: writes the TypeScript type of an app's `env` from the app's configuration. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { type AppConfigFile, readAppConfig } from "./app-config-file.ts";
import { OWN_PACKAGE } from "./bundle-app.ts";
import {
  CONFIG_HELP,
  CONFIG_OPTION,
  type Command,
  CommandFailure,
  readParameters,
} from "./command.ts";
import { makeDeclarations } from "./declarations.ts";

const FILE = "worker-configuration.d.ts";
const HEADING =
  "// Made by trunkline types: what the configuration says is in env. Run it again after a change.";

export const types: Command = {
  name: "types",
  usage: "[<file>] [--config <file>]",
  summary: "write the type of env for editors, from the configuration",
  help: `Writes ${FILE} beside trunkline.jsonc, or another file that ends in .d.ts: an interface Env
with the variables, secrets, agents and bindings of the app. Every file of the app has it without an import.
Editors also get the types of trunkline/agents.

${CONFIG_HELP}`,
  async run(parameters) {
    const { values, positionals } = readParameters(parameters, {
      options: CONFIG_OPTION,
      counts: [0, 1],
    });
    const file = readAppConfig(values.config as string | undefined);
    const [named = join(file.folder, FILE)] = positionals;
    if (!named.endsWith(".d.ts")) {
      throw new CommandFailure(`Cannot write ${named}: expected a name that ends in .d.ts`);
    }
    if (
      existsSync(named) &&
      !readFileSync(named, "utf8").startsWith("// Made by trunkline types")
    ) {
      throw new CommandFailure(
        `Cannot write ${named}: there is a file that trunkline types has not made`,
      );
    }
    writeFileSync(named, envTypes(file, named));
    makeDeclarations();
    console.log(`Wrote ${relative(process.cwd(), named) || named}`);
  },
};

/**
 * Returns the text of the type. `target` is the path of the file to write: imports in the text are relative to it.
 */
function envTypes({ config, folder }: AppConfigFile, target: string): string {
  const main = config.main && importPath(target, join(folder, config.main));
  const members = new Map<string, string>();
  const add = (name: string, type: string) => members.has(name) || members.set(name, type);
  for (const { binding, class_name: name } of config.agents) {
    // JavaScript modules have no types.
    const of = main && /\.[cm]?tsx?$/.test(main) ? `<import(${JSON.stringify(main)}).${name}>` : "";
    add(binding, `import("${OWN_PACKAGE}").AgentNamespace${of}`);
  }
  for (const { binding } of config.artifacts) add(binding, `import("${OWN_PACKAGE}").Artifacts`);
  if (config.browser) add(config.browser.binding, `import("${OWN_PACKAGE}").Browser`);
  for (const name of secretsOf(config)) add(name, "string");
  for (const [name, value] of Object.entries(config.vars)) add(name, typeOf(value));
  const lines = [...members].map(([name, type]) => `  readonly ${name}: ${type};`);
  return `${[HEADING, "interface Env {", ...lines, "}"].join("\n")}\n`;
}

function secretsOf({ secrets, webhooks }: AppConfigFile["config"]): Set<string> {
  return new Set([...secrets.required, ...webhooks.flatMap(({ secret }) => secret)]);
}

/**
 * Returns the type of a variable's value. The type still fits when a later deployment changes the value: a string has
 * the type `string`.
 */
function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) {
    const items = [...new Set(value.map(typeOf))];
    return `readonly (${items.length === 0 ? "unknown" : items.join(" | ")})[]`;
  }
  if (typeof value !== "object") return typeof value;
  const members = Object.entries(value).map(
    ([name, member]) => `readonly ${JSON.stringify(name)}: ${typeOf(member)}`,
  );
  return members.length === 0 ? "Readonly<Record<string, unknown>>" : `{ ${members.join("; ")} }`;
}

function importPath(target: string, main: string): string {
  const path = relative(join(target, ".."), main).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${posix.normalize(path)}`;
}
