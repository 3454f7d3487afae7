/** The command line of the benchmarks: which of them run, and how. */
import { parseArgs } from "node:util";
import type { Benchmark } from "./benchmark.ts";

interface Options {
  picked: readonly Benchmark[];
  isHelp: boolean;
  /** Path of a file for the figures as JSON. */
  json: string | undefined;
  /** Folder for a CPU profile of each process. */
  profile: string | undefined;
  /** Servers of the bus that benchmarks of the runtime use. */
  servers: string | undefined;
}

/** The text that `--help` prints. */
export function usageOf(benchmarks: readonly Benchmark[]): string {
  return `Usage: npm run bench -- [start of a name]… [option]…

Measures the platform against its references; without a name, in every benchmark. A figure that misses its target is no
failure.

  --json <file>       write the figures there as JSON
  --profile <folder>  write a CPU profile of each process there
  --servers <n>       run the benchmarks of the runtime on a cluster of that many servers
  --help              print this text

Benchmarks:
${benchmarks.map(({ name }) => `  ${name}`).join("\n")}`;
}

/** Throws one line about a word that is neither an option nor the start of a name. */
export function readOptions(words: string[], benchmarks: readonly Benchmark[]): Options {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: {
      json: { type: "string" },
      profile: { type: "string" },
      servers: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const unknown = positionals.find(
    (start) => !benchmarks.some(({ name }) => name.startsWith(start)),
  );
  if (unknown !== undefined) {
    throw new Error(`Cannot run "${unknown}": no benchmark begins so; --help lists all`);
  }
  const { servers } = values;
  if (servers !== undefined && !/^[1-9]\d?$/.test(servers)) {
    throw new Error(`--servers: expected a number from 1 to 99, found "${servers}"`);
  }
  const isPicked = ({ name }: Benchmark) =>
    positionals.length === 0 || positionals.some((start) => name.startsWith(start));
  return {
    picked: benchmarks.filter(isPicked),
    isHelp: values.help ?? false,
    json: values.json,
    profile: values.profile,
    servers,
  };
}
