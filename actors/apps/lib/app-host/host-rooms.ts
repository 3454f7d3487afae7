/** Reads how much memory this host has left for app processes, and how much room their folder has. */
import { readFile, statfs } from "node:fs/promises";

/** Something that app processes can use up. */
export interface HostRoom {
  /** `files`: the file system of the processes' folders, which is in memory if the machine has one. */
  name: "memory" | "files";
  totalBytes: number;
  freeBytes: number;
}

/** Returns the rooms that can be read. Without /proc, memory cannot. */
export async function readHostRooms(folder: string): Promise<HostRoom[]> {
  const rooms = await Promise.all([ofMachine(), ofContainer(V2), ofContainer(V1), ofFiles(folder)]);
  return rooms.filter((room) => room !== undefined);
}

async function ofMachine(): Promise<HostRoom | undefined> {
  const text = await readFile("/proc/meminfo", "utf8").catch(() => "");
  const read = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(text)?.[1] ?? 0) * 1024;
  const totalBytes = read("MemTotal");
  if (totalBytes === 0) return undefined;
  return { name: "memory", totalBytes, freeBytes: read("MemAvailable") + read("SwapFree") };
}

/** The files of a control group, for the two versions of control groups. */
interface GroupFiles {
  group: RegExp;
  root: string;
  limit: string;
  used: string;
  /** Matches the bytes of file caches, which the kernel can release. */
  cache: RegExp;
}

const V2: GroupFiles = {
  group: /^0::(.*)$/m,
  root: "/sys/fs/cgroup",
  limit: "memory.max",
  used: "memory.current",
  cache: /^(?:in)?active_file (\d+)/gm,
};
const V1: GroupFiles = {
  group: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m,
  root: "/sys/fs/cgroup/memory",
  limit: "memory.limit_in_bytes",
  used: "memory.usage_in_bytes",
  cache: /^total_(?:in)?active_file (\d+)/gm,
};

/** Reads the group of this process. A container shows it as the root. */
async function ofContainer({ group, root, ...files }: GroupFiles): Promise<HostRoom | undefined> {
  const groups = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const path = group.exec(groups)?.[1];
  if (path === undefined) return undefined;
  const read = (name: string) =>
    readFile(`${root}${path}/${name}`, "utf8").catch(() => readFile(`${root}/${name}`, "utf8"));
  try {
    const names = [files.limit, files.used, "memory.stat"];
    const [limit = "", used = "", stat = ""] = await Promise.all(names.map(read));
    const totalBytes = Number(limit);
    // Version 2 says "max" where there is no limit, and version 1 a number that no machine has.
    if (!Number.isSafeInteger(totalBytes) || totalBytes === 0) return undefined;
    const cache = [...stat.matchAll(files.cache)].reduce(
      (sum, [, bytes]) => sum + Number(bytes),
      0,
    );
    return { name: "memory", totalBytes, freeBytes: totalBytes - Number(used) + cache };
  } catch {
    return undefined;
  }
}

async function ofFiles(folder: string): Promise<HostRoom | undefined> {
  try {
    const { bsize, blocks, bavail } = await statfs(folder);
    return { name: "files", totalBytes: bsize * blocks, freeBytes: bsize * bavail };
  } catch {
    return undefined;
  }
}
