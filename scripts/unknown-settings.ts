/** Finds settings that nobody reads, as a typing error makes them. */
import { nearestName } from "../schemas/nearest-name.ts";
import { SETTING_NAMES } from "./config.ts";

/** For nats.conf and the cluster's; for the command line; and, by their beginnings, what tests and measurements hand on to each other. */
const OTHERS =
  /^TRUNKLINE_(NATS_(NAME|LISTEN|STORE|(SYSTEM_)?PASSWORD|ROUTES|(CLUSTER|MONITOR)_LISTEN)|IMAGE|API_URL|API_TOKEN|ACCOUNT_ID|TEST_.*|BENCH_.*)$/;
/** What Kubernetes sets in every container for a service whose name begins with trunkline. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/;

/** One line for each variable of the environment that looks like a setting and is none. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  return Object.entries(environment)
    .filter(([name, value]) => name.startsWith("TRUNKLINE_") && !isKnown(name, value))
    .map(
      ([name]) =>
        `${name} is no setting and does nothing: is ${nearestName(name, SETTING_NAMES)} meant?`,
    );
}

function isKnown(name: string, value = ""): boolean {
  if (SETTING_NAMES.includes(name) || OTHERS.test(name) || SERVICE_LINK.test(name)) return true;
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value);
}
