/** The plan of a job in its rows, and what is made of it: which addresses belong to the crawl. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { CrawlPlan } from "../../../../schemas/crawl/crawl-job.ts";
import { CRAWL_PATTERNS_MAX } from "../../../../schemas/crawl/limits.ts";
import { crawlScope, type ScopeVerdict } from "../../lib/scope/crawl-scope.ts";
import type { CrawlJobRow } from "./crawl-job-state.ts";

/** Patterns of one row of a job: the longest of them fit ROW_BYTES_MAX however they are written. */
export const PATTERNS_PER_ROW = 25;

type Row = DeepReadonly<CrawlJobRow>;

/** Patterns go into rows of their own: as many and as long ones as there may be do not fit one. */
export function planRows(plan: DeepReadonly<CrawlPlan>): [string, Row][] {
  const { includePatterns = [], excludePatterns = [], ...options } = plan.options;
  return [
    ["plan", { type: "plan", plan: { ...plan, options } }],
    ...patternRows("include", includePatterns),
    ...patternRows("exclude", excludePatterns),
  ];
}

/** A job's plan is read again and again and never changes: patterns are compiled once. */
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
  /** Steps of the matcher that one character of an address takes, at most. */
  readonly #stepsPerChar: number;
  readonly #scopes = new Map<string, (url: string) => ScopeVerdict>();

  constructor(plan: DeepReadonly<CrawlPlan>) {
    this.plan = plan;
    const { includePatterns = [], excludePatterns = [] } = plan.options;
    const patterns = [...includePatterns, ...excludePatterns];
    this.#stepsPerChar = patterns.reduce((sum, { length }) => sum + length / 32 + 1, 0);
  }

  /** `movedTo`: where redirects of the start URL have led to, which is as good a start. */
  judge(url: string, movedTo: string | undefined): ScopeVerdict {
    const verdict = this.#scopeOf(this.plan.url)(url);
    if (verdict.allowed || movedTo === undefined) return verdict;
    return this.#scopeOf(movedTo)(url);
  }

  /** What looking at an address costs, in steps of some nanoseconds: reading and hashing it is as long as thousands. */
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

/** By the row itself: who has the row has its plan, and one without rows is forgotten with it. */
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
