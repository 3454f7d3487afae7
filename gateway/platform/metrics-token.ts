/** The bearer token that opens /metrics: of the settings, or the one that the first start wrote beside the credentials. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "../../schemas/parse-json.ts";

export type MetricsToken = () => Promise<string | undefined>;

/** Resolves with undefined while this process knows of none: then nobody is let in. */
export function metricsTokenOf({
  metricsToken,
  dataDir,
}: {
  /** Of the settings. */
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
  // It is not there before the first start is done, and never where another process did that.
  const credentials = parseJson(await readFile(path, "utf8").catch(() => ""));
  if (typeof credentials !== "object" || credentials === null) return undefined;
  const { metrics_token: token } = credentials as { metrics_token?: unknown };
  return typeof token === "string" && token !== "" ? token : undefined;
}
