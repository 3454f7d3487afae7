/** Checks metrics and alerts with Prometheus's own code, in a small Go program. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { goTool } from "./go-tool.ts";

export interface AlertRule {
  alert: string;
  expr: string;
  forSeconds: number;
}

export interface Scrape {
  atSeconds: number;
  instance: string;
  /** The response of `/metrics`, or null if the process did not respond. */
  text: string | null;
}

export interface FiringAlert {
  alert: string;
  labels: Record<string, string>;
  value: number;
}

export class Promcheck {
  readonly #program: string;

  /** Builds the program. If Go is missing, prints the reason and skips the tests of the hook. */
  static async buildOrSkip(hook: Mocha.Context): Promise<Promcheck> {
    hook.timeout(900_000); // The first build compiles the engine of Prometheus.
    const version = "0.310.0";
    const program = await goTool({ name: "promcheck", version, package: ".", folder: "promcheck" });
    if (program !== undefined) return new Promcheck(program);
    console.log("      skipped: Prometheus's checks are built with Go, which is missing here");
    return hook.skip();
  }

  constructor(program: string) {
    this.#program = program;
  }

  /** Returns the faults that `promtool check metrics` finds, a line each: the metric and what is wrong. */
  async lint(metrics: string): Promise<string[]> {
    const printed = await this.#run("lint", metrics);
    return printed.split("\n").filter((line) => line !== "");
  }

  /** Returns the alerts that fire after the last scrape. */
  async alerts(rules: readonly AlertRule[], scrapes: readonly Scrape[]): Promise<FiringAlert[]> {
    return JSON.parse(await this.#run("alerts", JSON.stringify({ rules, scrapes })));
  }

  async #run(verb: string, input: string): Promise<string> {
    const child = spawn(this.#program, [verb], { stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.end(input);
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)]);
    if ((await ended) === 0) return printed;
    throw new Error(`Cannot run promcheck ${verb}: ${complaint}`);
  }
}
