/** Finds the bus for an operator's command: the configured outside servers, or the embedded server. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { configFromEnvironment } from "../config.ts";

export async function busOf(
  environment: NodeJS.ProcessEnv,
): Promise<{ url: string; credentials?: string }> {
  const { natsUrl, natsCredsFile, dataDir } = configFromEnvironment(environment);
  if (natsUrl !== undefined) {
    if (natsCredsFile === undefined) return { url: natsUrl };
    return { url: natsUrl, credentials: await readFile(natsCredsFile, "utf8") };
  }
  const file = join(dataDir, "nats.url");
  try {
    return { url: (await readFile(file, "utf8")).trim() };
  } catch (cause) {
    const expected =
      "set TRUNKLINE_NATS_URL, or TRUNKLINE_DATA to the folder of a running Trunkline";
    throw new Error(`Cannot find the bus: ${file} cannot be read; ${expected}`, { cause });
  }
}
