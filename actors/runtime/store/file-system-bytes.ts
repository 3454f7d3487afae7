/** Reads the size of a file system, which containers may keep small. */
import { statfs } from "node:fs/promises";

/** Returns the size in bytes of the file system that holds the folder; 0 if the folder does not exist. */
export async function fileSystemBytes(folder: string): Promise<number> {
  try {
    const { bsize, blocks } = await statfs(folder);
    return bsize * blocks;
  } catch {
    return 0;
  }
}
