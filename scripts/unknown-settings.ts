/** Finds misspelled settings: environment variables that look like settings but that no code reads. */
import { nearestName } from "../schemas/nearest-name.ts";
import type { Config } from "./config.ts";
import { SETTING_NAMES } from "./settings.ts";

/**
 * Other valid variables: variables of nats.conf, of nats-cluster.conf and of the command line, and all variables with
 * the prefixes of tests and benchmarks.
 */
const OTHERS =
  /^TRUNKLINE_(NATS_(NAME|LISTEN|STORE|(SYSTEM_)?PASSWORD|ROUTES|(CLUSTER|MONITOR)_LISTEN)|IMAGE|API_URL|API_TOKEN|ACCOUNT_ID|TEST_.*|BENCH_.*)$/;
/** Variables that Kubernetes sets in every container for a Service whose name begins with trunkline. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/;

/** Returns one line for each variable that looks like a setting but is unknown. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  return Object.entries(environment)
    .filter(([name, value]) => name.startsWith("TRUNKLINE_") && !isKnown(name, value))
    .map(
      ([name]) =>
        `${name} is no setting and does nothing: is ${nearestName(name, SETTING_NAMES)} meant?`,
    );
}

/** Returns one line for each secret in the environment that no role of this process needs. */
export function needlessSettings({
  roles,
  secretsKeys,
}: Pick<Config, "roles" | "secretsKeys">): string[] {
  if (secretsKeys.length === 0 || roles.some((role) => role !== "browser")) return [];
  return ["TRUNKLINE_SECRETS_KEY is for the roles gateway and actors: remove it from this process"];
}

function isKnown(name: string, value = ""): boolean {
  if (SETTING_NAMES.includes(name) || OTHERS.test(name) || SERVICE_LINK.test(name)) return true;
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value);
}
