/**
 * Runs every test file of the repository, or those named on the command line, two at a time, each in a process of its
 * own, and ends with the line `N passed, N failed`. Other parameters (`--grep x`) go to mocha.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import type { Counts } from "./counting-reporter.ts";
import { endLeftovers, RUN_VARIABLE } from "./leftovers.ts";

const MOCHA = join(REPOSITORY, "node_modules/mocha/bin/mocha.js");
const REPORTER = join(import.meta.dirname, "counting-reporter.ts");
const FILES = "{schemas,actors,gateway,deploy,scripts}/**/*.test.ts";
const JOBS = 2;
/** One file that hangs must not hold the others for ever. */
const FILE_MS_MAX = 10 * 60_000;
/** After its last test a file has closed what it opened, or has forgotten something. */
const CLOSE_MS_MAX = 5_000;

const isFile = (parameter: string) => parameter.endsWith(".test.ts");
const parameters = process.argv.slice(2).filter((parameter) => !isFile(parameter));
const named = process.argv.slice(2).filter(isFile);
const files = named.length > 0 ? named : globSync(FILES, { cwd: REPOSITORY }).sort();
const total: Counts = { passed: 0, failed: 0, skipped: 0 };
const run = `${process.pid}-${Date.now()}`;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    endLeftovers(run);
    process.exit(1);
  });
}
await Promise.all(Array.from({ length: JOBS }, runFiles));
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

async function runFiles(): Promise<void> {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const counts = await runFile(file);
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
}

/** Prints what a file said in one piece, so that two at a time stay readable. */
async function runFile(file: string): Promise<Counts> {
  const fileRun = `${run}-${file}`;
  // What a test that is killed cannot delete itself goes with this folder.
  const folder = await mkdtemp(join(tmpdir(), "trunkline-run-"));
  // Browsers run as another user when we are root, and have their profiles in here.
  await chmod(folder, 0o711);
  const child = spawn(process.execPath, [MOCHA, "--reporter", REPORTER, ...parameters, file], {
    cwd: REPOSITORY,
    env: { ...process.env, [RUN_VARIABLE]: fileRun, TMPDIR: folder },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true, // A Ctrl-C reaches it through this process, which then ends all of it.
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  let counts: Counts | undefined;
  let problem = "";
  const end = (text: string) => () => {
    problem = text;
    endLeftovers(fileRun);
  };
  let timer = setTimeout(end(`did not end within ${FILE_MS_MAX} ms`), FILE_MS_MAX);
  child.once("message", (message: Counts) => {
    counts = message;
    clearTimeout(timer);
    timer = setTimeout(end("left something open after its last test"), CLOSE_MS_MAX);
  });
  const [code] = await once(child, "exit");
  clearTimeout(timer);
  const left = endLeftovers(fileRun);
  if (left.length > 0) problem ||= `left processes behind: ${left.join(", ")}`;
  if (counts === undefined) problem ||= `ended with code ${code} before its last test`;
  counts ??= { passed: 0, failed: 0, skipped: 0 };
  if (problem !== "") counts.failed += 1;
  // The pipes of a child may be held by what it left behind, so their end is not waited for before that is ended.
  if (!child.stdout?.readableEnded) await once(child, "close");
  await rm(folder, { recursive: true, force: true });
  const ran = counts.passed + counts.failed > 0;
  if (ran) console.log(`${file}${output.trimEnd()}${problem && `\n  ${file} ${problem}`}\n`);
  return counts;
}
