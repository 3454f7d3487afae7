/**
 * Measures how much of real pages the Markdown of Trunkline and of other engines keeps. Converts the Markdown back to
 * HTML and compares it with the original page.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markdown as ours } from "../../../actors/rendering/lib/extract/markdown.ts";
import type { Benchmark, Figure } from "../benchmark.ts";
import { unpackDebian } from "../unpack-debian.ts";
import { COLUMNS, type Column, featuresOf, shareKept } from "./markdown-features.ts";

const FOLDER = join(import.meta.dirname, "markdown");
/** Number of pages to measure, evenly distributed over the documentation. */
const PAGES = 50;
/** Maximum length of a page, because the time of some engines grows with the square of the length. */
const PAGE_CHARS_MAX = 300_000;
const PACKAGES = ["markdownify==1.2.3", "html2text==2025.4.15", "markitdown==0.1.9"];

/** Python's documentation. It contains every kind of code, tables, definitions, and links around code. */
const DOCUMENTATION = { package: "python3.11-doc", folder: "usr/share/doc/python3.11/html" };

type Converted = Record<string, string[]>;

export const markdown: Benchmark = {
  name: "markdown",
  async run() {
    if (!existsSync(join(FOLDER, "node_modules"))) {
      console.error("installing engines for the benchmark: npm ci in scripts/bench/markdown");
      execFileSync("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit"], { cwd: FOLDER });
    }
    const { engines, toHtml } = await import(join(FOLDER, "engines.mjs"));
    const scratch = mkdtempSync(join(tmpdir(), "trunkline-bench-"));
    try {
      const pages = readPages(
        process.env.TRUNKLINE_BENCH_PAGES ?? unpackDebian(scratch, DOCUMENTATION),
      );
      const converted: Converted = inPython(scratch, pages);
      for (const [name, convert] of Object.entries<(html: string) => string>(engines)) {
        converted[name] = pages.map(convert);
      }
      const own = pages.map((html) =>
        ours({ html, baseUrl: "https://a.example/", isScripted: true }),
      );
      return figuresOf(pages, own, converted, toHtml);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  },
};

function figuresOf(
  pages: string[],
  own: string[],
  converted: Converted,
  toHtml: (markdown: string) => string,
): Figure[] {
  const wanted = pages.map((html) => featuresOf(html));
  const shares = (texts: string[]) => {
    const read = texts.map((text) => featuresOf(toHtml(text)));
    return Object.fromEntries(
      COLUMNS.map((column) => [column, shareKept(column, wanted, read)]),
    ) as Record<Column, number>;
  };
  const kept = shares(own);
  return Object.entries(converted).flatMap(([engine, texts]) => {
    const theirs = shares(texts);
    return COLUMNS.map((column) => ({
      name: `Markdown of ${pages.length} pages, ${column} kept, ${engine}`,
      unit: "%",
      ours: kept[column] * 100,
      reference: theirs[column] * 100,
      target: { atLeast: 1 },
    }));
  });
}

function readPages(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const pages = names
    .filter((name) => /\.html?$/.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .filter(({ length }) => length <= PAGE_CHARS_MAX);
  const step = Math.max(1, Math.floor(pages.length / PAGES));
  return pages.filter((_, index) => index % step === 0).slice(0, PAGES);
}

function inPython(scratch: string, pages: string[]): Converted {
  const environment = join(scratch, "python");
  execFileSync("python3", ["-m", "venv", environment]);
  const python = join(environment, "bin/python");
  execFileSync(python, ["-m", "pip", "install", "-q", ...PACKAGES], { stdio: "inherit" });
  const input = JSON.stringify(pages);
  const output = execFileSync(python, [join(FOLDER, "engines.py")], { input, maxBuffer: 2 ** 30 });
  return JSON.parse(output.toString());
}
