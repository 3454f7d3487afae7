/**
 * Runs every test file of the repository, or those named on the command line, two at a time, each in a process of its
 * own. Says at the end once more what failed, and ends with the line `N passed, N failed`. Other parameters (`--grep x`)
 * go to mocha.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { REPOSITORY } from "../tools.ts";
import type { Counts } from "./counting-reporter.ts";
import { endLeftovers, endLeftoversThatStay, RUN_VARIABLE } from "./leftovers.ts";

const MOCHA = join(REPOSITORY, "node_modules/mocha/bin/mocha.js");
const REPORTER = join(import.meta.dirname, "counting-reporter.ts");
const FILES = "{schemas,agents,actors,gateway,deploy,scripts}/**/*.test.ts";
/** These take minutes, and much of the machine: one after the other, and beside them what is light. */
const HEAVY = /fault|hostile|upkeep|cluster/;
/** One file that hangs must not hold the others for ever. */
const FILE_MS_MAX = 20 * 60_000;
/** After its last test a file has closed what it opened, or has forgotten something. */
const CLOSE_MS_MAX = 30_000;
/** Where mocha's list of failures begins; colours may stand before it. */
const FAILING = /^.* \d+ failing/m;

const isFile = (parameter: string) => parameter.endsWith(".test.ts");
const parameters = process.argv.slice(2).filter((parameter) => !isFile(parameter));
const named = process.argv.slice(2).filter(isFile);
/** Packages that the benchmarks have installed for themselves bring tests of their own. */
const isPackages = (path: string) => path.split(sep).includes("node_modules");
const files =
  named.length > 0 ? named : globSync(FILES, { cwd: REPOSITORY, exclude: isPackages }).sort();
const heavy = files.filter((file) => HEAVY.test(file));
const light = files.filter((file) => !HEAVY.test(file));
const total: Counts = { passed: 0, failed: 0, skipped: 0 };
/** What failed, as its file said it: a run is long, and who reads it sees its end first. */
const failures: string[] = [];
const run = `${process.pid}-${Date.now()}`;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    endLeftovers(run);
    process.exit(1);
  });
}
await Promise.all([runFiles(heavy, light), runFiles(light, heavy)]);
if (failures.length > 0) console.log(`== what failed\n${failures.join("\n")}`);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

/** One at a time: its own, and then what is left of the others'. */
async function runFiles(own: string[], others: string[]): Promise<void> {
  const next = () => own.shift() ?? others.shift();
  for (let file = next(); file !== undefined; file = next()) {
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
  const left = await endLeftoversThatStay(fileRun);
  if (left.length > 0) problem ||= `left processes behind: ${left.join(", ")}`;
  if (counts === undefined) problem ||= `ended with code ${code} before its last test`;
  counts ??= { passed: 0, failed: 0, skipped: 0 };
  if (problem !== "") counts.failed += 1;
  // The pipes of a child may be held by what it left behind, so their end is not waited for before that is ended.
  if (!child.stdout?.readableEnded) await once(child, "close");
  // What was just ended may have written there until then.
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  const said = `${output.trimEnd()}${problem && `\n  ${file} ${problem}`}\n`;
  if (counts.passed + counts.failed > 0) console.log(`${file}${said}`);
  if (counts.failed > 0) failures.push(`${file}\n${said.slice(Math.max(0, said.search(FAILING)))}`);
  return counts;
}
