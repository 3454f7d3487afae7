/** Reads the memory of a process group from Linux's /proc. */
import { readdir, readFile } from "node:fs/promises";

const PAGE_BYTES = 4_096;
const RENDERER = "--type=renderer";

/**
 * Returns the memory of the whole process group in bytes. Shared memory is divided among the processes that share it
 * (PSS). If the kernel hides the PSS of a sandboxed process, only its private memory counts. Undefined if there is no
 * /proc.
 */
export async function groupMemoryBytes(group: number): Promise<number | undefined> {
  const pids = await membersOf(group);
  if (pids === undefined) return undefined;
  const sizes = await Promise.all(pids.map(memoryOf));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Returns the renderers of the group that use at least `bytes` of private memory. Shared memory does not count,
 * because it takes long to find the processes that share it with a large process.
 */
export async function renderersAbove(group: number, bytes: number): Promise<number[]> {
  const pids = (await descendantsOf(group)) ?? (await membersOf(group)) ?? [];
  const large: number[] = [];
  for (const pid of pids) {
    if ((await ownMemoryOf(pid)) < bytes) continue;
    const commandLine = await read(`/proc/${pid}/cmdline`);
    if (commandLine.includes(RENDERER)) large.push(Number(pid));
  }
  return large;
}

/**
 * Returns the group's renderers, the largest first, with the memory that `groupMemoryBytes` counts for each. That also
 * includes shared memory, into which a page may put its images.
 */
export async function largestRenderers(group: number): Promise<{ pid: number; bytes: number }[]> {
  const pids = (await membersOf(group)) ?? [];
  const sizes = await Promise.all(
    pids.map(async (pid) => {
      const isRenderer = (await read(`/proc/${pid}/cmdline`)).includes(RENDERER);
      return isRenderer ? [{ pid: Number(pid), bytes: await memoryOf(pid) }] : [];
    }),
  );
  return sizes.flat().toSorted((one, other) => other.bytes - one.bytes);
}

/**
 * Returns the ids of the processes below the process. It reads only their files, while `membersOf` reads those of all
 * processes of the machine. Undefined if the kernel does not list children.
 */
async function descendantsOf(pid: number): Promise<string[] | undefined> {
  // Chromium's first process and its zygotes start all others from their main threads.
  const listed = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => undefined);
  if (listed === undefined) return undefined;
  const children = listed.split(" ").filter((child) => child !== "");
  const below = await Promise.all(children.map((child) => descendantsOf(Number(child))));
  return [...children, ...below.flatMap((pids = []) => pids)];
}

/** Ids of the group's processes. Undefined where there is no /proc. */
export async function membersOf(group: number): Promise<string[] | undefined> {
  const names = await readdir("/proc").catch(() => undefined);
  if (names === undefined) return undefined;
  const pids = names.filter((name) => /^\d+$/.test(name));
  const groups = await Promise.all(pids.map(groupOf));
  return pids.filter((_, index) => groups[index] === group);
}

/** Field 5 of /proc/<pid>/stat; the name in field 2 may hold blanks and parentheses. */
async function groupOf(pid: string): Promise<number> {
  const stat = await read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
}

async function memoryOf(pid: string): Promise<number> {
  const [, kibibytes] = /^Pss:\s+(\d+) kB$/m.exec(await read(`/proc/${pid}/smaps_rollup`)) ?? [];
  if (kibibytes !== undefined) return Number(kibibytes) * 1_024;
  return await ownMemoryOf(pid);
}

async function ownMemoryOf(pid: string): Promise<number> {
  const [, resident = 0, shared = 0] = (await read(`/proc/${pid}/statm`)).split(" ").map(Number);
  return (resident - shared) * PAGE_BYTES;
}

async function read(file: string): Promise<string> {
  // A process may end at any time; then its file counts as empty.
  return await readFile(file, "utf8").catch(() => "");
}
