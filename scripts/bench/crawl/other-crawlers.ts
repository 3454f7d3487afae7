/** Runs other crawlers. Each runs in its own process and stores the same data of each page as Trunkline. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { goTool } from "../../testing/go-tool.ts";
import { TOOLS } from "../../tools.ts";
import type { Crawled } from "./crawl.ts";

const run = promisify(execFile);
const SCRAPY = "2.19.0";

export interface CrawlCost extends Crawled {
  cpuMs: number;
  /**
   * The peak memory. For another crawler, it is the resident memory of its process. For Trunkline, it is the sum of the
   * PSS of the instance's processes, without Chromium.
   */
  peakBytes: number;
}

interface CrawlTask {
  url: string;
  /** The limit of pages. */
  pages: number;
  /** Path of the output file, with one page per line as JSON. */
  output: string;
}

export type Crawler = (task: CrawlTask) => Promise<CrawlCost>;

/** Builds the Go program of the crawler Colly. Returns undefined if Go is missing. */
export async function colly(): Promise<Crawler | undefined> {
  const version = "2.3.0";
  // As seen from the folder of goTool.
  const folder = "../bench/crawl/colly";
  const program = await goTool({
    ...{ name: "bench-colly", version, package: ".", folder, isOptimized: true },
  });
  return program === undefined ? undefined : (task) => costOf(program, [], task);
}

/** Installs the Python crawler Scrapy. Returns undefined if Python or Scrapy is not available. */
export function scrapy(): Crawler | undefined {
  const environment = join(TOOLS, `bench-scrapy-${SCRAPY}`);
  const python = join(environment, "bin/python");
  try {
    if (!existsSync(join(environment, "bin/scrapy"))) {
      execFileSync("python3", ["-m", "venv", environment]);
      execFileSync(python, ["-m", "pip", "install", "-q", `scrapy==${SCRAPY}`]);
    }
  } catch {
    return undefined; // A figure less, and nothing that fails.
  }
  const program = join(import.meta.dirname, "scrapy/crawl.py");
  return (task) => costOf(python, [program], task);
}

async function costOf(program: string, parameters: string[], task: CrawlTask): Promise<CrawlCost> {
  const { url, pages, output } = task;
  const { stdout } = await run(program, [...parameters, url, String(pages), output]);
  return JSON.parse(stdout);
}
