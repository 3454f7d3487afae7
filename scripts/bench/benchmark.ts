/**
 * The interface of a benchmark: it measures a reference and Trunkline in alternating rounds, and returns figures with
 * their targets.
 */

export interface Benchmark {
  /** `npm run bench -- <text>` runs the benchmarks whose names begin with the text. */
  name: string;
  run(): Promise<Figure[]>;
}

export interface Figure {
  name: string;
  unit: string;
  ours: number;
  /** The result of the reference, a plain library or tool, measured in the same rounds. */
  reference?: number;
  /**
   * The limit of `ours / reference`, or of `ours` if there is no reference. Absent if the figure is only informative.
   */
  target?: Target;
}

export type Target = { atLeast: number } | { atMost: number };

/** The results of a closed loop, which starts a new operation whenever one ends. */
export interface Load {
  operations: number;
  ms: number;
  latencies: Float64Array;
}

/**
 * Number of rounds of a figure. Other programs use the machine too, so the median of the rounds is taken: a disturbed
 * round does not change it.
 */
export const ROUNDS = 5;
export const ROUND_MS = 2_000;

/** Measures the reference and Trunkline alternately. Omits the first round, which only warms up. */
export async function alternate<T>(reference: () => Promise<T>, ours: () => Promise<T>) {
  const rounds: { reference: T; ours: T }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    rounds.push({ reference: await reference(), ours: await ours() });
  }
  const measured = rounds.slice(1);
  return {
    reference: measured.map((round) => round.reference),
    ours: measured.map((round) => round.ours),
  };
}

/**
 * Returns the figures of the rounds: operations per second, the median latency, and the 99th percentile of the
 * latency.
 */
export function loadFigures(
  name: string,
  rounds: { reference: Load[]; ours: Load[] },
  targets: { perSecond?: Target; p50?: Target; p99?: Target },
): Figure[] {
  const figure = (unit: string, of: (load: Load) => number, target: Target | undefined) => ({
    name,
    unit,
    ours: median(rounds.ours.map(of)),
    reference: median(rounds.reference.map(of)),
    ...(target && { target }),
  });
  return [
    figure("/s", ({ operations, ms }) => (operations / ms) * 1_000, targets.perSecond),
    figure("ms p50", ({ latencies }) => quantile(latencies, 0.5), targets.p50),
    figure("ms p99", ({ latencies }) => quantile(latencies, 0.99), targets.p99),
  ];
}

export const ratioOf = ({ ours, reference }: Figure) =>
  reference === undefined ? undefined : ours / reference;

export function isMet(figure: Figure): boolean | undefined {
  const { target, ours } = figure;
  if (target === undefined) return undefined;
  const value = ratioOf(figure) ?? ours;
  return "atLeast" in target ? value >= target.atLeast : value <= target.atMost;
}

export const median = (values: number[]) => quantile(Float64Array.from(values), 0.5);

export function quantile(values: Float64Array, part: number): number {
  const sorted = values.toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
