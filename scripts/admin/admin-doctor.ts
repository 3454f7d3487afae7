/**
 * `trunkline admin doctor`: checks this machine, its settings and its bus, and names the command that fixes each
 * problem.
 */
import { parseArgs } from "node:util";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { type Config, configFromEnvironment } from "../config.ts";
import type { Role } from "../settings.ts";
import { needlessSettings, unknownSettings } from "../unknown-settings.ts";
import { version } from "../version.ts";
import { busOf } from "./bus-of.ts";
import { type Check, type Finding, LEVELS, runChecks, worstOf } from "./doctor/check.ts";
import { CHECKS } from "./doctor/checks.ts";
import { reportJson, reportText } from "./doctor/report.ts";
import { UsageError } from "./usage-error.ts";

const SITE = "https://example.com/";

/**
 * Prints the findings. Returns the exit status: 0 if all is good, 1 with warnings, 2 with a failure that stops the
 * service.
 */
export async function adminDoctor(
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const { json, site, checks } = readParameters(parameters);
  const findings = await examine(checks, { site, environment });
  console.log(json ? reportJson(findings, version()) : reportText(findings));
  return LEVELS.indexOf(worstOf(findings));
}

interface Parameters {
  json: boolean;
  site: URL;
  checks: readonly Check[];
}

function readParameters(parameters: readonly string[]): Parameters {
  try {
    const options = { json: { type: "boolean" }, site: { type: "string" } } as const;
    const { values, positionals } = parseArgs({
      args: [...parameters],
      options,
      allowPositionals: true,
    });
    const site = URL.parse(values.site ?? SITE);
    if (site?.protocol !== "https:" && site?.protocol !== "http:") {
      throw new Error(`--site: expected an http:// or https:// URL, found "${values.site}"`);
    }
    const names = CHECKS.map(({ name }) => name);
    const unknown = positionals.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new Error(`expected ${names.join(", ")}, found "${unknown}"`);
    const checks = CHECKS.filter(
      ({ name }) => positionals.length === 0 || positionals.includes(name),
    );
    return { json: values.json === true, site, checks };
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    throw new UsageError(`Cannot run "admin doctor": ${reason}`);
  }
}

async function examine(
  checks: readonly Check[],
  { site, environment }: { site: URL; environment: NodeJS.ProcessEnv },
): Promise<Finding[]> {
  const about = "settings";
  const mend = "correct the variable: docs/reference/configuration.md";
  const wanted = "settings that are known";
  const warnings = unknownSettings(environment).map(
    (found): Finding => ({ level: "warning", about, found, wanted, mend }),
  );
  let config: Config;
  try {
    config = configFromEnvironment(environment);
  } catch (error) {
    const lines = error instanceof Error ? error.message.split("\n") : [String(error)];
    const valid = "valid settings";
    const failures = lines.map(
      (found): Finding => ({ level: "failure", about, found, wanted: valid, mend }),
    );
    return [...failures, ...warnings];
  }
  const needless = needlessSettings(config).map(
    (text): Finding => ({
      ...{ level: "warning", about, found: text, mend },
      wanted: "secrets only where they are needed",
    }),
  );
  const connecting = connect(environment, config.roles[0]);
  const bus = connecting.catch(() => undefined);
  const busProblem = connecting.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  try {
    const context = { config, site, clock: systemClock, bus, busProblem };
    return [...warnings, ...needless, ...(await runChecks(checks, context))];
  } finally {
    await (await bus)?.close();
  }
}

async function connect(environment: NodeJS.ProcessEnv, role: Role | undefined): Promise<Bus> {
  return await Bus.connect({ ...(await busOf(environment, role)), name: "trunkline-doctor" });
}
