/**
 * Runs the test files of a suite, or the files that the command line selects, several at a time. Prints their output,
 * the slowest files, the failures again, and finally the line `N passed, N failed`.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  MEMORY_FOLDER,
  removeLeftFolders,
  rootIn,
} from "../../actors/apps/lib/app-host/process-folders.ts";
import { endAll } from "./leftovers.ts";
import { RunReport } from "./run-report.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { longestFirst, readDurations, recordDurations } from "./test-durations.ts";
import { type Concurrency, TestPool } from "./test-pool.ts";
import { allTestFiles, type Suite, selectTests } from "./test-selection.ts";

const USAGE = `Usage: npm test -- [options] [path or name of a test …]
       npm run test:faults -- [options] [path or name of a test …]

  --grep <pattern>   run only tests whose full name matches this regular expression
  --rerun-failed     run each file that failed once more, by itself, after all others
  --record           write how long the files took into test-durations.json
  --close-ms <n>     how long a file may keep something open after its last test (default: 30000)
  --workers <n>      how many files run at a time (default here: ${defaultConcurrency("quick").workers}, and while
                     processors are idle up to ${defaultConcurrency("quick").more} more)
`;

process.exitCode = await main(process.argv.slice(2));

async function main(parameters: string[]): Promise<number> {
  const options = readOptions(parameters);
  if (typeof options === "string") {
    console.error(options);
    return 2;
  }
  const { suite, wanted } = options;
  const selection = selectTests(suite, wanted);
  const grep = options.grep ?? selection.grep;
  if (selection.files.length === 0) {
    console.error(`No test matches "${wanted.join(" ")}": neither a path nor the name of a test.`);
    return 1;
  }
  const files = longestFirst(selection.files, readDurations());
  const folder = await mkdtemp(join(await temporaryFolder(suite), "trunkline-run-"));
  // If root runs the tests, browsers run as another user, and must be able to enter this folder to reach their
  // profiles.
  await chmod(folder, 0o711);
  const mark = `${process.pid}-${Date.now()}/`;
  endOnSignal(mark, folder);
  const { workers: wantedWorkers } = options;
  const concurrency =
    wantedWorkers === undefined ? defaultConcurrency(suite) : { workers: wantedWorkers, more: 0 };
  const pool = new TestPool({
    mark,
    folder,
    closeMs: options.closeMs,
    ...(grep !== undefined && { grep }),
  });
  const report = new RunReport((text) => process.stdout.write(text));
  await pool.run(files, concurrency, report);
  if (options.rerunFailed) {
    for (const file of report.failedFiles())
      await pool.run([file], { workers: 1, more: 0 }, report);
  }
  await removeAll(folder);
  report.end();
  if (options.record) {
    const known = new Set(allTestFiles());
    recordDurations(report.seconds, (file) => known.has(file));
  }
  if (report.testsRun > 0) return report.hasFailed ? 1 : 0;
  const name = wanted.length > 0 ? wanted.join(" ") : options.grep;
  if (!report.hasFailed) console.error(`No test ran: none matches "${name}".`);
  return 1;
}

interface Options {
  suite: Suite;
  wanted: string[];
  grep: string | undefined;
  rerunFailed: boolean;
  record: boolean;
  workers: number | undefined;
  closeMs: number;
}

/** Returns the options, or the text of an error if the parameters are invalid. */
function readOptions(parameters: string[]): Options | string {
  try {
    const { values, positionals } = parseArgs({
      args: parameters,
      allowPositionals: true,
      options: {
        faults: { type: "boolean", default: false },
        grep: { type: "string" },
        "rerun-failed": { type: "boolean", default: false },
        record: { type: "boolean", default: false },
        "close-ms": { type: "string", default: "30000" },
        workers: { type: "string" },
      },
    });
    return {
      suite: values.faults ? "faults" : "quick",
      wanted: positionals,
      grep: values.grep,
      rerunFailed: values["rerun-failed"],
      record: values.record,
      workers: values.workers === undefined ? undefined : count("workers", values.workers),
      closeMs: count("close-ms", values["close-ms"]),
    };
  } catch (error) {
    return `${error instanceof Error ? error.message : error}\n\n${USAGE}`;
  }
}

function count(option: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${option}: expected a positive whole number, found "${text}"`);
}

/**
 * Runs more files at a time than the machine has processors, because many tests mostly wait. While the processors are
 * idle, it runs even more. Fault tests measure recovery times, so fewer of them run at a time.
 */
function defaultConcurrency(suite: Suite): Concurrency {
  const processors = availableParallelism();
  if (suite === "faults") return { workers: processors + 1, more: 1 };
  return { workers: processors + 1, more: 2 * processors };
}

/** On a signal, ends all processes and removes all folders of the run. */
function endOnSignal(mark: string, folder: string): void {
  for (const [signal, number] of [
    ["SIGHUP", 1],
    ["SIGINT", 2],
    ["SIGTERM", 15],
  ] as const) {
    process.once(signal, async () => {
      await endAll(mark);
      await removeAll(folder);
      process.exit(128 + number);
    });
  }
}

/**
 * Removes the temporary files of the run, and the folders of its hosts in shared memory. The hosts must have ended
 * before.
 */
async function removeAll(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  await removeLeftFolders(await rootIn(MEMORY_FOLDER));
}
