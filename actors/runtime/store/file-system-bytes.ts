/** Reads the size of a file system, which containers may keep small. */
import { statfs } from "node:fs/promises";

/** The size in bytes; 0 where the folder does not exist. */
export async function fileSystemBytes(folder: string): Promise<number> {
  try {
    const { bsize, blocks } = await statfs(folder);
    return bsize * blocks;
  } catch {
    return 0;
  }
}
