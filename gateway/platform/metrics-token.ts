/** Finds the bearer token for /metrics: from the settings, or from credentials.json, which the first start wrote. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "../../schemas/parse-json.ts";

export type MetricsToken = () => Promise<string | undefined>;

/** Returns a function that resolves to the token; undefined means that nobody may read the metrics yet. */
export function metricsTokenOf({
  metricsToken,
  dataDir,
}: {
  /** TRUNKLINE_METRICS_TOKEN. */
  metricsToken?: string | undefined;
  dataDir: string;
}): MetricsToken {
  let known = metricsToken;
  return async () => {
    known ??= await readToken(join(dataDir, "credentials.json"));
    return known;
  };
}

async function readToken(path: string): Promise<string | undefined> {
  // The file exists only after the first start. In a cluster, only one machine has it.
  const credentials = parseJson(await readFile(path, "utf8").catch(() => ""));
  if (typeof credentials !== "object" || credentials === null) return undefined;
  const { metrics_token: token } = credentials as { metrics_token?: unknown };
  return typeof token === "string" && token !== "" ? token : undefined;
}
