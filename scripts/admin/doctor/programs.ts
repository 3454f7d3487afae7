/** Checks the external programs: whether Chromium can print a page, and whether git is new enough. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import puppeteer from "puppeteer-core";
import { Chromium } from "../../../actors/rendering/lib/browser/chromium.ts";
import { findChromium, findGit, GIT_MIN } from "../../tools.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";
import { readText } from "./kernel.ts";

/**
 * Starts Chromium as the role `browser` does: in its sandbox, and as the user `nobody` if this process runs as root.
 */
export async function checkBrowser({ config }: DoctorContext): Promise<readonly Finding[]> {
  if (!config.roles.includes("browser")) return [];
  const wanted = "a Chromium that prints a page in its sandbox";
  let chromium: Chromium | undefined;
  try {
    const executablePath = findChromium({ ...process.env, TRUNKLINE_CHROMIUM: config.chromium });
    chromium = await Chromium.start({ executablePath });
    const { transport, ended } = chromium;
    const browser = await orEnded(ended, puppeteer.connect({ transport, defaultViewport: null }));
    const found = await orEnded(ended, browser.version());
    const page = await orEnded(ended, browser.newPage());
    await orEnded(ended, page.setContent("<h1>Hello</h1>"));
    await orEnded(ended, page.pdf());
    return [good("browser", `${found} at ${executablePath}`, wanted)];
  } catch (error) {
    // Waits until Chromium has exited, because only then have its last log lines arrived.
    await chromium?.kill();
    const found =
      lastLine(chromium?.stderr) ?? (error instanceof Error ? error.message : "nothing");
    return [{ level: "failure", about: "browser", found, wanted, mend: mendOf(found) }];
  } finally {
    await chromium?.kill();
  }
}

/** Rejects as soon as the browser process has exited, because the browser's transport may not report its exit. */
async function orEnded<T>(ended: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Error("Chromium ended"));
  if (ended.aborted) stop();
  ended.addEventListener("abort", stop, { once: true });
  work.catch(() => {});
  try {
    return await Promise.race([work, stopped]);
  } finally {
    ended.removeEventListener("abort", stop);
  }
}

function mendOf(found: string): string {
  if (/TRUNKLINE_CHROMIUM/.test(found)) return "unset TRUNKLINE_CHROMIUM, or correct its path";
  if (/sandbox|namespace|zygote/i.test(found)) {
    return sandboxMend();
  }
  return "apt-get install chromium-headless-shell";
}

/** Settings of the kernel that forbid user namespaces, which Chromium's sandbox needs, and the value that allows them. */
const NAMESPACE_SETTINGS = [
  { key: "kernel.apparmor_restrict_unprivileged_userns", allows: "0" },
  { key: "kernel.unprivileged_userns_clone", allows: "1" },
];

/**
 * In a container, the profile of the engine forbids user namespaces as well. Names only settings that this kernel has:
 * `sysctl -w` refuses the others.
 */
function sandboxMend(): string {
  const settings = NAMESPACE_SETTINGS.filter(({ key, allows }) => {
    const found = readText(`/proc/sys/${key.replaceAll(".", "/")}`)?.trim();
    return found !== undefined && found !== allows;
  });
  const sysctl =
    settings.length > 0
      ? `sysctl -w ${settings.map(({ key, allows }) => `${key}=${allows}`).join(" ")}`
      : undefined;
  if (!isContainer()) {
    return sysctl ?? "let this user make user namespaces, until `unshare --user true` succeeds";
  }
  const profile =
    "start the container with --security-opt seccomp=deploy/seccomp-browser.json (docs/operate/containers.md; on Kubernetes docs/operate/kubernetes.md)";
  return sysctl === undefined ? profile : `${profile}; on the host: ${sysctl}`;
}

/** Docker and Podman leave these files in each container, and Kubernetes sets this variable. */
const isContainer = () =>
  existsSync("/.dockerenv") ||
  existsSync("/run/.containerenv") ||
  process.env.KUBERNETES_SERVICE_HOST !== undefined;

const lastLine = (text = "") => text.split("\n").findLast((line) => line.trim() !== "");

export async function checkGit({ config }: DoctorContext): Promise<readonly Finding[]> {
  if (!config.roles.includes("gateway")) return [];
  const wanted = `${GIT_MIN} or newer`;
  try {
    const path = findGit();
    const { stdout } = await promisify(execFile)(path, ["--version"]);
    return [good("git", `${stdout.trim()} at ${path}`, wanted)];
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    return [{ level: "failure", about: "git", found, wanted, mend: "apt-get install git" }];
  }
}
