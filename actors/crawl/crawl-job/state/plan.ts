/** The plan of a job in its rows, and its compiled form that decides which addresses belong to the crawl. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { CrawlPlan } from "../../../../schemas/crawl/crawl-job.ts";
import { CRAWL_PATTERNS_MAX } from "../../../../schemas/crawl/limits.ts";
import { crawlScope, type ScopeVerdict } from "../../lib/scope/crawl-scope.ts";
import type { CrawlJobRow } from "./crawl-job-state.ts";

/** Patterns per row. The longest ones fit ROW_BYTES_MAX in any encoding. */
export const PATTERNS_PER_ROW = 25;

type Row = DeepReadonly<CrawlJobRow>;

/** Returns the rows of a plan. All patterns together may exceed one row. */
export function planRows(plan: DeepReadonly<CrawlPlan>): [string, Row][] {
  const { includePatterns = [], excludePatterns = [], ...options } = plan.options;
  return [
    ["plan", { type: "plan", plan: { ...plan, options } }],
    ...patternRows("include", includePatterns),
    ...patternRows("exclude", excludePatterns),
  ];
}

/** Returns the compiled plan. A plan never changes, so its patterns are compiled once. */
export function readPlan(get: (row: string) => Row | undefined): PreparedPlan {
  const row = get("plan");
  assert(row?.type === "plan", "A job has a plan");
  const known = prepared.get(row);
  if (known !== undefined) return known;
  const options = {
    ...row.plan.options,
    includePatterns: patternsOf("include", get),
    excludePatterns: patternsOf("exclude", get),
  };
  const plan = new PreparedPlan({ ...row.plan, options });
  prepared.set(row, plan);
  return plan;
}

export class PreparedPlan {
  readonly plan: DeepReadonly<CrawlPlan>;
  /** Highest number of matcher steps for one character of an address. */
  readonly #stepsPerChar: number;
  readonly #scopes = new Map<string, (url: string) => ScopeVerdict>();

  constructor(plan: DeepReadonly<CrawlPlan>) {
    this.plan = plan;
    const { includePatterns = [], excludePatterns = [] } = plan.options;
    const patterns = [...includePatterns, ...excludePatterns];
    this.#stepsPerChar = patterns.reduce((sum, { length }) => sum + length / 32 + 1, 0);
  }

  /**
   * Decides whether an address belongs to the crawl. `movedTo` is the address to which the start URL redirected; the
   * scope of a crawl that starts there is included.
   */
  judge(url: string, movedTo: string | undefined): ScopeVerdict {
    const verdict = this.#scopeOf(this.plan.url)(url);
    if (verdict.allowed || movedTo === undefined) return verdict;
    return this.#scopeOf(movedTo)(url);
  }

  /**
   * Returns the cost of an address, counted in matcher steps. Reading and hashing the address costs 4,000 of them.
   */
  workOf(url: string): number {
    return 4_000 + url.length * this.#stepsPerChar;
  }

  #scopeOf(start: string): (url: string) => ScopeVerdict {
    const known = this.#scopes.get(start);
    if (known !== undefined) return known;
    const scope = crawlScope(start, this.plan.options);
    this.#scopes.set(start, scope);
    return scope;
  }
}

/** Keyed by the row object, so a compiled plan is collected together with its rows. */
const prepared = new WeakMap<Row, PreparedPlan>();

function patternRows(list: string, patterns: readonly string[]): [string, Row][] {
  const rows: [string, Row][] = [];
  for (let start = 0; start < patterns.length; start += PATTERNS_PER_ROW) {
    const slice = patterns.slice(start, start + PATTERNS_PER_ROW);
    rows.push([`patterns/${list}/${rows.length}`, { type: "patterns", patterns: slice }]);
  }
  return rows;
}

function patternsOf(list: string, get: (row: string) => Row | undefined): string[] {
  const patterns: string[] = [];
  for (let number = 0; number < CRAWL_PATTERNS_MAX / PATTERNS_PER_ROW; number += 1) {
    const row = get(`patterns/${list}/${number}`);
    if (row?.type === "patterns") patterns.push(...row.patterns);
  }
  return patterns;
}
