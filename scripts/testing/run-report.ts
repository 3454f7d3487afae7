/** Prints the report of a run: the output of each file, the slowest files, the failures again, and the counts. */
import { OrderedOutput } from "./ordered-output.ts";
import type { FileOutcome } from "./test-worker-main.ts";

const SLOWEST = 20;
/** Files that took less time than this are not in the table of the slowest files. */
const SLOW_S = 1;
/** Matches the start of mocha's list of failures, which may begin with colour codes. */
const FAILING = /^.* \d+ failing/m;

interface FileReport {
  outcome: FileOutcome;
  /** The file's output. */
  text: string;
}

export class RunReport {
  /** How long each file took. */
  readonly seconds = new Map<string, number>();
  readonly #startedAt = performance.now();
  readonly #print: (text: string) => void;
  readonly #output: OrderedOutput;
  readonly #files = new Map<string, FileReport>();
  /** Tests that failed in a file's first run, when the file's second run passed. */
  readonly #flaky: string[] = [];

  constructor(print: (text: string) => void) {
    this.#print = print;
    this.#output = new OrderedOutput(print);
  }

  /** Starts the report of a file. A second report of the same file replaces the first. */
  open(file: string): { write(text: string): void; end(outcome: FileOutcome): void } {
    const startedAt = performance.now();
    const output = this.#output.open(file);
    let text = "";
    const write = (more: string) => {
      text += more;
      output.write(more);
    };
    return {
      write,
      end: (outcome) => {
        const seconds = (performance.now() - startedAt) / 1_000;
        if (outcome.problem !== undefined) {
          // Mocha prints its failures at the end of a file. If the file did not end, print them here.
          const details = outcome.failures.map(({ name, error }) => `${name}\n${error}\n`);
          write(`${outcome.hasEnded ? "" : details.join("")}  ${file} ${outcome.problem}\n`);
        }
        if (text !== "") output.write(`  ${seconds.toFixed(1)} s\n\n`);
        output.end();
        this.#settle(file, { outcome, text }, seconds);
      },
    };
  }

  failedFiles(): string[] {
    return [...this.#files].filter(([, { outcome }]) => hasFailed(outcome)).map(([file]) => file);
  }

  get hasFailed(): boolean {
    return this.failedFiles().length > 0;
  }

  get testsRun(): number {
    return this.#sum("passed") + this.#sum("failed");
  }

  /** Prints the summary of the run, when all files have ended. */
  end(): void {
    this.#printLongest("the slowest files", this.seconds);
    this.#printLongest("the files that took most processor time", this.#processorSeconds());
    const failed = this.failedFiles().map((file) => {
      const { text = "" } = this.#files.get(file) ?? {};
      return `${file}\n${text.slice(Math.max(0, text.search(FAILING))).trimEnd()}`;
    });
    if (failed.length > 0) this.#line(`== what failed\n${failed.join("\n")}`);
    const took = (performance.now() - this.#startedAt) / 1_000;
    const processor = [...this.#processorSeconds().values()].reduce((sum, s) => sum + s, 0);
    const ofProcessor = processor > 0 ? `, ${processor.toFixed(0)} s of processor time` : "";
    this.#line(`== ${this.#files.size} files in ${took.toFixed(0)} s${ofProcessor}`);
    for (const flaky of this.#flaky) this.#line(`flaky: ${flaky}`);
    for (const failure of this.#failedTests()) this.#line(`failed: ${failure}`);
    const skipped = this.#sum("skipped");
    const counts = `${this.#sum("passed")} passed, ${this.#failures} failed`;
    this.#line(skipped > 0 ? `${counts}, ${skipped} skipped` : counts);
  }

  #printLongest(title: string, secondsOf: ReadonlyMap<string, number>): void {
    const long = [...secondsOf].filter(([, s]) => s >= SLOW_S).sort(([, a], [, b]) => b - a);
    const rows = long
      .slice(0, SLOWEST)
      .map(([file, s]) => `${s.toFixed(1).padStart(7)} s  ${file}`);
    if (rows.length > 0) this.#line(`== ${title}\n${rows.join("\n")}`);
  }

  #processorSeconds(): Map<string, number> {
    const known = new Map<string, number>();
    for (const [file, { outcome }] of this.#files) {
      if (outcome.processorSeconds !== undefined) known.set(file, outcome.processorSeconds);
    }
    return known;
  }

  /** The number of failed tests, plus one for each file that has a problem of its own. */
  get #failures(): number {
    const outcomes = [...this.#files.values()].map(({ outcome }) => outcome);
    return this.#sum("failed") + outcomes.filter(({ problem }) => problem !== undefined).length;
  }

  /** One line for each failure, with the first line of its error. */
  #failedTests(): string[] {
    return this.failedFiles().flatMap((file) => {
      const outcome = this.#files.get(file)?.outcome;
      const tests = (outcome?.failures ?? []).map(
        ({ name, error }) => `${name}: ${firstLine(error)}`,
      );
      const problems = outcome?.problem === undefined ? [] : [firstLine(outcome.problem)];
      return [...tests, ...problems].map((text) => `${file}: ${text}`);
    });
  }

  #settle(file: string, report: FileReport, seconds: number): void {
    const before = this.#files.get(file)?.outcome;
    this.#files.set(file, report);
    this.seconds.set(file, seconds);
    if (before === undefined || hasFailed(report.outcome)) return;
    const failures = before.failures.map(({ name }) => name);
    const names = before.problem === undefined ? failures : [...failures, before.problem];
    for (const name of names) this.#flaky.push(`${file}: ${name}`);
  }

  #sum(count: "passed" | "failed" | "skipped"): number {
    return [...this.#files.values()].reduce((sum, { outcome }) => sum + outcome[count], 0);
  }

  #line(text: string): void {
    this.#print(`${text}\n`);
  }
}

const firstLine = (text: string) => text.trimStart().split("\n", 1)[0] ?? "";

const hasFailed = ({ failed, problem }: FileOutcome) => failed > 0 || problem !== undefined;
