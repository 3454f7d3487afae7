/** Finds the key that seals secrets: in the settings, or in a file that the first start creates. */
import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isSecretKey, newSecretKey, SecretBox, SecretKeyError } from "./secret-box.ts";

interface SecretKeys {
  /** The keys in TRUNKLINE_SECRETS_KEY, newest first. If there are none, the key file is used. */
  secretsKeys: readonly string[];
  dataDir: string;
}

const FILE = "secrets.key";

export async function openSecretBox(keys: SecretKeys): Promise<SecretBox> {
  const found = await findSecretBox(keys);
  if (found) return found;
  const path = join(keys.dataDir, FILE);
  return boxOf(path, await make(keys.dataDir, path));
}

/** Opens the box, or returns undefined if there is no key yet. Creates nothing. */
export async function findSecretBox({
  secretsKeys,
  dataDir,
}: SecretKeys): Promise<SecretBox | undefined> {
  if (secretsKeys.length > 0) return new SecretBox(secretsKeys);
  const path = join(dataDir, FILE);
  const text = await readIfThere(path);
  return text === undefined ? undefined : boxOf(path, text);
}

function boxOf(path: string, text: string): SecretBox {
  const keys = text.split(/[\s,]+/).filter((key) => key !== "");
  if (keys.length > 0 && keys.every(isSecretKey)) return new SecretBox(keys);
  const expected = "keys of 32 bytes in base64, the newest first";
  throw new SecretKeyError(`Cannot read ${path}: expected ${expected}; put a copy of it back`);
}

/**
 * The file is complete and on disk before it gets its final name. If several processes start, only one of them
 * creates it.
 */
async function make(dataDir: string, path: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const made = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(made, "wx", 0o600);
  try {
    await file.writeFile(`${newSecretKey()}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(made, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await rm(made);
  }
  await syncFolder(dataDir);
  return readFile(path, "utf8");
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
