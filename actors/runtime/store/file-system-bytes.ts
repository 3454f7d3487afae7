/** How large a file system is, of what containers keep small. */
import { statfs } from "node:fs/promises";

/** 0 where there is no such folder. */
export async function fileSystemBytes(folder: string): Promise<number> {
  try {
    const { bsize, blocks } = await statfs(folder);
    return bsize * blocks;
  } catch {
    return 0;
  }
}
