/** Runs Crawlee in its own process. Its packages are installed when a benchmark first needs them. */
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

/** Starts the process. It answers a `CrawleeRun` with the number of stored pages and the elapsed milliseconds. */
export async function startCrawlee(): Promise<Child> {
  if (!existsSync(join(FOLDER, "node_modules"))) {
    console.error("installing Crawlee for the benchmarks: npm ci in scripts/bench/crawlee");
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit"], { cwd: FOLDER });
  }
  return await Child.of(fork(join(FOLDER, "crawlee-process.mjs"), { serialization: "advanced" }));
}
