/** Creates the folders of one app process and writes the bundle, readable only by the process's user. */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ActorError } from "../../../../schemas/errors.ts";
import { splitSourceMap } from "./split-source-map.ts";

export interface ProcessFiles {
  bundle: string;
  bundleFolder: string;
  workFolder: string;
}

/** Rejects with ActorError `unavailable` if the host cannot write the files, which is not a fault of the app. */
export async function writeProcessFiles(
  folder: string,
  bundleBytes: Uint8Array,
  user: number | undefined,
): Promise<ProcessFiles> {
  const bundleFolder = join(folder, "bundle");
  const workFolder = join(folder, "work");
  const bundle = join(bundleFolder, "bundle.mjs");
  try {
    for (const path of [folder, bundleFolder, workFolder]) await mkdir(path, { mode: 0o700 });
    const { code, map } = splitSourceMap(bundleBytes);
    const files = [bundle];
    await writeFile(bundle, code, { mode: 0o400 });
    if (map) {
      files.push(`${bundle}.map`);
      await writeFile(`${bundle}.map`, map, { mode: 0o400 });
    }
    if (user !== undefined) {
      for (const path of [...files, bundleFolder, workFolder, folder])
        await chown(path, user, user);
    }
  } catch (cause) {
    const { code = "unknown error" } = cause as NodeJS.ErrnoException;
    const text = `Cannot start the app just now: its host cannot write its files (${code})`;
    throw new ActorError("unavailable", text, { retryAfterS: 1 });
  }
  return { bundle, bundleFolder, workFolder };
}
