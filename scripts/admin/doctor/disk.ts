/** Checks the disk of the data folder: whether it is writable, its free space, and the speed of its syncs. */
import { randomUUID } from "node:crypto";
import { access, constants, open, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DISK_BYTES_MIN, DISK_WRITES_STOP_BYTES } from "../../disk-room.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** Warns below this free space: the crawls of one day could fill it. */
const ROOM_WARNING_BYTES = 2_000_000_000;
const INODES_WARNING = 10_000;
/**
 * Warns if a sync takes longer, because each commit waits for one sync. A local disk with a write cache takes less
 * than 5 ms.
 */
const SYNC_WARNING_MS = 20;
const SYNCS = 15;
const SYNC_TOTAL_MS_MAX = 5_000;
const PAGE = Buffer.alloc(4_096, 1);
const MB = 1_000_000;
const MEND_ROOM =
  "delete what is not needed there, or set TRUNKLINE_DATA to a folder on a larger disk";

/**
 * With an outside bus, the data is on the disks of other machines, and the data folder contains only caches and
 * credentials.
 */
export async function checkDisk({ config }: DoctorContext): Promise<readonly Finding[]> {
  const { dataDir, natsUrl } = config;
  const folder = await existingFolder(dataDir);
  const isEmbedded = natsUrl === undefined;
  const room = await roomFinding(folder, isEmbedded);
  try {
    await access(folder, constants.W_OK);
    const speed = await syncFinding(folder, isEmbedded);
    return [good("data folder", dataDir, "a folder that this user may write to"), room, speed];
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const finding: Finding = {
      level: "failure",
      about: "data folder",
      found: `${dataDir}, where writing fails: ${code}`,
      wanted: "a folder that this user may write to",
      mend: mendOfWriting(code, { dataDir, folder }),
    };
    return [finding, room];
  }
}

/** `folder` is the nearest existing folder: the data folder itself, or a parent of it. */
function mendOfWriting(
  code: string,
  { dataDir, folder }: { dataDir: string; folder: string },
): string {
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return MEND_ROOM;
    case "EROFS":
    case "EIO": {
      const remount = `mount -o remount,rw "$(findmnt -no TARGET -T '${folder}')"`;
      return `dmesg says why the disk is read-only or fails: mend it, then ${remount}; or set TRUNKLINE_DATA to a folder on another disk`;
    }
    case "ENOTDIR":
      return "set TRUNKLINE_DATA to a folder: this path leads to a file";
  }
  const user = process.getuid?.() ?? "<user>";
  if (folder !== dataDir) return `as root: install -d -o ${user} '${dataDir}'`;
  return `as root: chown -R ${user} '${dataDir}'`;
}

async function roomFinding(folder: string, isEmbedded: boolean): Promise<Finding> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(folder);
  const [free, all] = [bsize * bavail, bsize * blocks];
  const about = "disk room";
  const found = `${inMb(free)} of ${inMb(all)} free at ${folder}`;
  const finding = { about, found, mend: MEND_ROOM };
  if (isEmbedded && all < DISK_BYTES_MIN) {
    return { ...finding, level: "failure", wanted: `a disk of at least ${inMb(DISK_BYTES_MIN)}` };
  }
  if (free < DISK_WRITES_STOP_BYTES) {
    return {
      ...finding,
      level: "failure",
      wanted: `at least ${inMb(DISK_WRITES_STOP_BYTES)} free`,
    };
  }
  if (free < ROOM_WARNING_BYTES) {
    return { ...finding, level: "warning", wanted: `at least ${inMb(ROOM_WARNING_BYTES)} free` };
  }
  if (files > 0 && ffree < INODES_WARNING) {
    const inodes = {
      found: `${ffree} free inodes at ${folder}`,
      wanted: `at least ${INODES_WARNING}`,
    };
    return { ...finding, ...inodes, level: "warning" };
  }
  return good(about, found, `at least ${inMb(ROOM_WARNING_BYTES)} free`);
}

/** Writes and syncs a page several times, as the bus does for each commit, and measures the time. */
async function syncFinding(folder: string, isEmbedded: boolean): Promise<Finding> {
  const times: number[] = [];
  const path = join(folder, `doctor-${randomUUID()}`);
  const startedAt = performance.now();
  try {
    await using file = await open(path, "wx", 0o600);
    while (times.length < SYNCS && performance.now() - startedAt < SYNC_TOTAL_MS_MAX) {
      const before = performance.now();
      await file.write(PAGE);
      await file.datasync();
      times.push(performance.now() - before);
    }
  } finally {
    await rm(path, { force: true });
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
  const about = "disk speed";
  const found = `${median.toFixed(1)} ms for a synced write at ${folder}`;
  const wanted = `at most ${SYNC_WARNING_MS} ms`;
  if (!isEmbedded || median <= SYNC_WARNING_MS) return good(about, found, wanted);
  const mend = "set TRUNKLINE_DATA to a folder on a local SSD";
  return { level: "warning", about, found, wanted, mend };
}

/** Returns the folder, or its nearest existing parent folder: the first start creates the missing folders. */
async function existingFolder(folder: string): Promise<string> {
  const found = await stat(folder).catch(() => undefined);
  return found || dirname(folder) === folder ? folder : await existingFolder(dirname(folder));
}

const inMb = (bytes: number) => `${Math.floor(bytes / MB)} MB`;
