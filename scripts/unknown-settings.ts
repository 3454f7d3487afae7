/** Finds settings that nobody reads, as a typing error makes them. */
import { SETTING_NAMES } from "./config.ts";

/** For nats.conf and the cluster's; and, by their beginnings, what tests and measurements hand on to each other. */
const OTHERS =
  /^TRUNKLINE_(NATS_(NAME|LISTEN|STORE|(SYSTEM_)?PASSWORD|ROUTES|(CLUSTER|MONITOR)_LISTEN)|IMAGE|TEST_.*|BENCH_.*)$/;
/** What Kubernetes sets in every container for a service whose name begins with trunkline. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/;

/** One line for each variable of the environment that looks like a setting and is none. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  return Object.entries(environment)
    .filter(([name, value]) => name.startsWith("TRUNKLINE_") && !isKnown(name, value))
    .map(([name]) => `${name} is no setting and does nothing: is ${nearest(name)} meant?`);
}

function isKnown(name: string, value = ""): boolean {
  if (SETTING_NAMES.includes(name) || OTHERS.test(name) || SERVICE_LINK.test(name)) return true;
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value);
}

function nearest(name: string): string {
  const [first = ""] = SETTING_NAMES.toSorted((a, b) => distance(name, a) - distance(name, b));
  return first;
}

/** How many characters must be added, dropped or replaced to make one of the other (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (character === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
