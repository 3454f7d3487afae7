/** Checks the external programs: whether Chromium can print a page, and whether git is new enough. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import puppeteer from "puppeteer-core";
import { Chromium } from "../../../actors/rendering/lib/browser/chromium.ts";
import { findChromium, findGit, GIT_MIN } from "../../tools.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

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
    return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 kernel.unprivileged_userns_clone=1";
  }
  return "apt-get install chromium-headless-shell";
}

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
