/** Finds the results of a request, as pages of the console, by the keys of its steps. */
import { agentPlace, webhooksPlace } from "../apps/agent-place.ts";
import type { WireStep } from "../lib/wire.ts";

interface Result {
  label: string;
  /** A path below the account. */
  to: string;
}

/** Returns each result once, in the order of the steps. */
export function resultsOf(steps: readonly WireStep[], accountId: string): Result[] {
  const found = steps.map((step) => resultOf(step, accountId)).filter((one) => one !== undefined);
  return [...new Map(found.map((one) => [one.to, one])).values()];
}

function resultOf({ name, key }: WireStep, accountId: string): Result | undefined {
  const [kind] = name.split(" ");
  if (kind === "crawl-job" && key !== null) return { label: `Crawl ${key}`, to: `crawls/${key}` };
  if (!key?.startsWith(`${accountId}.`)) return undefined;
  const [first = "", second = "", ...rest] = key.slice(accountId.length + 1).split(".");
  const place = { app: first, className: second, name: rest.join(".") };
  switch (kind) {
    case "app":
    case "app-entry":
      return { label: `App ${first}`, to: `apps/${first}` };
    case "agent":
      return { label: `Agent ${second} ${place.name}`, to: agentPlace(place) };
    case "agent-inbox":
      return { label: `Webhooks of ${second} ${place.name}`, to: webhooksPlace(place) };
    case "outgoing-webhook":
      return { label: `Webhooks from ${second} ${place.name}`, to: `${webhooksPlace(place)}/sent` };
    default:
      return undefined;
  }
}
