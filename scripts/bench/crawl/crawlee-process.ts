/** Crawlee in a process of its own; its packages are installed when a benchmark first asks for them. */
import { execFileSync, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../child.ts";

const FOLDER = join(import.meta.dirname, "crawlee");

export interface CrawleeRun {
  url: string;
  pages: number;
  render: boolean;
  chromium: string;
}

/** Starts it; it answers a `CrawleeRun` with pages kept and the milliseconds they took. */
export async function startCrawlee(): Promise<Child> {
  if (!existsSync(join(FOLDER, "node_modules"))) {
    console.error("installing Crawlee for the benchmarks: npm ci in scripts/bench/crawlee");
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit"], { cwd: FOLDER });
  }
  return await Child.of(fork(join(FOLDER, "crawlee-process.mjs"), { serialization: "advanced" }));
}
