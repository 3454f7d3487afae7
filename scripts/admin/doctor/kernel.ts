/**
 * Checks the limits of the operating system: open files, namespaces for Chromium's sandbox, shared memory, processes.
 */
import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { Config } from "../../config.ts";
import { type DoctorContext, type Finding, good, type Level } from "./check.ts";

/** Warns below this limit of open files. Each connection and each open agent uses file descriptors. */
const FILES_WARNING = 65_536;
/** Below this limit, even a platform without load runs out of file descriptors. */
const FILES_FAILURE = 512;
/**
 * Minimum size of shared memory. Chromium renders pages in shared memory, which also contains the databases of open
 * agents.
 */
const SHARED_MEMORY_BYTES = 512 * 1024 ** 2;
const MEMORY_BYTES = 2_000_000_000;
const MB = 1_000_000;

interface KernelSetting {
  path: string;
  role?: Config["roles"][number];
  isGood(value: number): boolean;
  wanted: string;
  mend: string;
  level: Level;
}

/** A setting whose file does not exist is skipped: this kernel has no such limit. */
const KERNEL_SETTINGS: readonly KernelSetting[] = [
  {
    path: "/proc/sys/kernel/unprivileged_userns_clone",
    role: "browser",
    isGood: (value) => value === 1,
    wanted: "1, for Chromium's sandbox",
    mend: "sysctl -w kernel.unprivileged_userns_clone=1",
    level: "warning",
  },
  {
    path: "/proc/sys/user/max_user_namespaces",
    role: "browser",
    isGood: (value) => value >= 1_000,
    wanted: "at least 1000, for Chromium's sandbox",
    mend: "sysctl -w user.max_user_namespaces=15000",
    level: "warning",
  },
  {
    path: "/proc/sys/net/core/somaxconn",
    role: "gateway",
    isGood: (value) => value >= 511,
    wanted: "at least 511, so that bursts of connections are not dropped",
    mend: "sysctl -w net.core.somaxconn=4096",
    level: "warning",
  },
  {
    path: "/proc/sys/vm/overcommit_memory",
    isGood: (value) => value !== 2,
    wanted: "0 or 1: Node and Chromium reserve addresses that they never use",
    mend: "sysctl -w vm.overcommit_memory=0",
    level: "warning",
  },
  {
    path: "/sys/fs/cgroup/pids.max",
    isGood: (value) => value >= 1_024,
    wanted: "at least 1024 processes and threads",
    mend: "raise pids_limit of the container, or TasksMax of the systemd unit",
    level: "warning",
  },
  {
    path: "/sys/fs/cgroup/memory.max",
    isGood: (value) => value >= MEMORY_BYTES,
    wanted: `at least ${MEMORY_BYTES} bytes`,
    mend: "raise mem_limit of the container, or MemoryMax of the systemd unit",
    level: "warning",
  },
];

export async function checkDescriptors(): Promise<readonly Finding[]> {
  const text = readText("/proc/self/limits");
  const [, limit] = /^Max open files\s+(\d+)/m.exec(text ?? "") ?? [];
  if (limit === undefined) return [];
  const wanted = `at least ${FILES_WARNING}`;
  if (Number(limit) >= FILES_WARNING) return [good("descriptors", limit, wanted)];
  const level = Number(limit) < FILES_FAILURE ? "failure" : "warning";
  const mend = `ulimit -n ${FILES_WARNING}, or LimitNOFILE=${FILES_WARNING} in the systemd unit`;
  return [{ level, about: "descriptors", found: limit, wanted, mend }];
}

export async function checkKernel({ config }: DoctorContext): Promise<readonly Finding[]> {
  const settings = KERNEL_SETTINGS.filter(({ role }) => !role || config.roles.includes(role));
  const findings = settings.flatMap(settingFinding);
  findings.push(...(await sharedMemoryFinding(config)));
  return findings.length > 0 ? findings : [good("kernel settings", "all as wanted", "")];
}

/** Returns a finding if the kernel's setting has a wrong value. The value `max` means no limit. */
function settingFinding({ path, isGood, wanted, mend, level }: KernelSetting): Finding[] {
  const found = readText(path)?.trim();
  if (found === undefined || found === "max" || isGood(Number(found))) return [];
  return [
    { level, about: path.replace(/^\/proc\/sys\//, "").replaceAll("/", "."), found, wanted, mend },
  ];
}

async function sharedMemoryFinding({ roles }: Config): Promise<Finding[]> {
  if (!roles.includes("browser") && !roles.includes("actors")) return [];
  const found = await statfs("/dev/shm").catch(() => undefined);
  if (found === undefined || found.bsize * found.blocks >= SHARED_MEMORY_BYTES) return [];
  return [
    {
      level: "warning",
      about: "/dev/shm",
      found: inMb(found.bsize * found.blocks),
      wanted: `at least ${inMb(SHARED_MEMORY_BYTES)}`,
      mend: "mount -o remount,size=1g /dev/shm, or shm_size: 1gb of the container",
    },
  ];
}

/** Returns undefined if there is no such file. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // Another system, or another kernel.
  }
}

const inMb = (bytes: number) => `${Math.floor(bytes / MB)} MB`;
