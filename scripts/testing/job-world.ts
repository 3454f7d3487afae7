/**
 * Runs a crawl job without a bus. Checks every transition against the runtime's limits, and keeps the job's sends.
 */
import assert from "node:assert/strict";
import { crawlJobActor } from "../../actors/crawl/crawl-job/crawl-job.ts";
import {
  CrawlJobRow,
  type CrawlJobState,
  INITIAL,
} from "../../actors/crawl/crawl-job/state/crawl-job-state.ts";
import { pageOf } from "../../actors/crawl/crawl-job/state/page-rows.ts";
import { readTransition } from "../../actors/runtime/kinds/transition.ts";
import { deepFreeze } from "../../actors/runtime/lib/deep-freeze.ts";
import type { DeepReadonly, Envelope, Input, Reply } from "../../schemas/contract.ts";
import {
  CrawlNews,
  type CrawlPlan,
  type PageOutcome,
  type RecordEntry,
} from "../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../schemas/crawl/crawl-page.ts";
import { STATE_BYTES_MAX } from "../../schemas/limits.ts";
import { runHandler } from "./run-handler.ts";

type Messages = typeof crawlJobActor.contract.messages;
type Row = DeepReadonly<CrawlJobRow>;

export const JOB = "5".repeat(32);
export const ACCOUNT = "a".repeat(32);
export const START = "https://site.example/";
export const HOST = "site.example";
const NOON = Date.UTC(2026, 10, 20, 12);

interface StartLimits {
  bytesMax?: number | undefined;
  hostsMax?: number | undefined;
}

export class JobWorld {
  state: DeepReadonly<CrawlJobState> = INITIAL;
  rows = new Map<string, Row>();
  now = NOON;
  /** Sends that `take` has not returned yet. */
  sent: Envelope[] = [];
  /** All live updates. */
  readonly news: CrawlNews[] = [];
  readonly reminders = new Map<string, number>();
  /** Rows that the last message wrote. */
  rowsWritten: string[] = [];
  #turns = 0;
  #ids = 0;

  run<N extends keyof Messages>(message: N, input: Input<Messages[N]>): Reply<Messages[N]> {
    const { state, rows, send, remind, reply, live, forgotten } = runHandler(
      crawlJobActor,
      message,
      this.state,
      // Converts the input to the JSON form that crosses the bus.
      JSON.parse(JSON.stringify(input)),
      {
        key: JOB,
        now: this.now,
        newId: () => (++this.#ids).toString(16).padStart(32, "f"),
        rows: this.rows,
      },
    );
    const transition = { state, rows: rows as Record<string, Row | null>, send, remind };
    readTransition(
      crawlJobActor,
      `crawl-job.${JOB}`,
      forgotten ? { forget: true, send } : transition,
    );
    if (forgotten) {
      this.rows.clear();
      this.reminders.clear();
    }
    assert(JSON.stringify(state).length < STATE_BYTES_MAX / 10, "the state stays small");
    if (live !== undefined) this.news.push(CrawlNews.parse(live));
    this.state = state;
    this.rowsWritten = Object.keys(rows);
    for (const [name, row] of Object.entries(transition.rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, deepFreeze(CrawlJobRow.parse(JSON.parse(JSON.stringify(row)))));
    }
    for (const [name, at] of Object.entries(remind)) {
      if (typeof at === "number") this.reminders.set(name, at);
      else this.reminders.delete(name);
    }
    this.sent.push(...send);
    return reply;
  }

  start(plan: Partial<CrawlPlan> = {}, { bytesMax, hostsMax }: StartLimits = {}): this {
    this.run("start", {
      ...(bytesMax !== undefined && { bytesMax }),
      ...(hostsMax !== undefined && { hostsMax }),
      account: ACCOUNT,
      request: { name: `crawl.${JOB}.request`, bytes: 10 },
      plan: {
        url: START,
        limit: 10,
        depth: 100_000,
        source: "all",
        formats: ["html"],
        render: false,
        options: {},
        intent: { purposes: ["search"] },
        ...plan,
      },
    });
    return this;
  }

  learn(more: Partial<Input<Messages["robotsLearned"]>> = {}): void {
    this.run("robotsLearned", { host: HOST, scheme: "https", sitemaps: [], ...more });
  }

  /** Reports a robots.txt without sitemaps, and that the default sitemaps do not exist. */
  learnNoSitemaps(): void {
    this.learn();
    const turn = this.grant();
    const { requests } = turn;
    for (const request of requests) {
      if (request.type === "sitemap") {
        const end = { failed: "HTTP 404", retry: false };
        const { url, nesting } = request;
        this.run("sitemapRead", { turn: turn.turn, url, urls: [], nested: [], nesting, end });
      }
    }
    this.run("turnEnded", { host: HOST, turn: turn.turn });
  }

  /**
   * Grants a turn and returns the task that the job sends to the worker. Throws if the job returned the turn unused.
   */
  grant(requests = 256, host = HOST): Turn {
    const turn = this.tryGrant(requests, host);
    assert(turn, `${host} has something to do`);
    return turn;
  }

  tryGrant(requests = 256, host = HOST): Turn | undefined {
    const turn = (++this.#turns).toString(16).padStart(32, "0");
    this.run("turnGranted", { host, turn, requests });
    const task = this.take("crawl-page").findLast(({ message }) => message.endsWith("Turn"));
    return task?.input as Turn | undefined;
  }

  report({ turn, host }: Turn, ...outcomes: PageOutcome[]): void {
    this.run("turnReported", { turn, host, outcomes });
  }

  /** Grants a turn of one page and reports its outcome. */
  visit(outcome: (index: number) => PageOutcome, host = HOST): void {
    const turn = this.grant(1, host);
    const [request] = turn.requests;
    assert(request?.type === "page", "the turn has a page");
    this.report(turn, outcome(request.index));
    this.run("turnEnded", { host, turn: turn.turn });
  }

  /** Delivers the job's messages to itself until there are none. Returns the number of deliveries. */
  settleBacklog(): number {
    for (let steps = 0; ; steps += 1) {
      if (this.take("crawl-job").length === 0) return steps;
      this.run("admitMore", {});
    }
  }

  /** Removes the sends to actors or workers of a kind from `sent`, and returns them. */
  take(kind: string): Envelope[] {
    const taken = this.sent.filter((envelope) => envelope.kind === kind);
    this.sent = this.sent.filter((envelope) => envelope.kind !== kind);
    return taken;
  }

  summary() {
    return this.run("get", { account: ACCOUNT });
  }

  list(query: Partial<Input<Messages["list"]>> = {}) {
    return this.run("list", { account: ACCOUNT, count: 100, ...query });
  }

  /** Returns every record, by listing page by page. */
  records(query: Partial<Input<Messages["list"]>> = {}): RecordEntry[] {
    const all: RecordEntry[] = [];
    for (let cursor: string | undefined; ; ) {
      const { entries, more } = this.list({ ...query, ...(cursor && { cursor }) });
      all.push(...entries.map(({ entry }) => entry));
      if (!more) return all;
      cursor = entries.at(-1)?.cursor;
    }
  }

  statuses(): Record<string, string> {
    return Object.fromEntries(this.records().map(({ url, status }) => [url, status]));
  }
}

/** Returns the outcome of a successfully fetched page that has the given links. */
export const fetched =
  (links: string[] = [], more: Partial<Extract<PageOutcome, { kind: "fetched" }>> = {}) =>
  (index: number): PageOutcome => ({
    kind: "fetched",
    index,
    metadata: { status: 200, url: START, title: "A page" },
    blobs: [{ name: `crawl.${JOB}.${index}.1`, bytes: 7 }],
    links,
    browserMs: 0,
    ...more,
  });

/** Checks that the job's state and rows are consistent with each other. */
export function checkJob({ state, rows }: JobWorld): void {
  const counts = { queued: 0, inFlight: 0, finished: 0, skipped: 0, total: 0 };
  const urls = new Set<string>();
  const numbers = new Set<number>();
  const inTurns: number[] = [];
  const inQueues: number[] = [];
  const records = { row: (name: string) => rows.get(name) };
  for (const [name, row] of rows) {
    if (row.type === "turn") inTurns.push(...row.pages);
    if (row.type === "host") {
      let { first: index } = row;
      let length = 0;
      for (; index !== undefined; length += 1) {
        inQueues.push(index);
        index = pageOf(records, index).next;
      }
      assert.equal(length, row.queued, `queue of ${name}`);
    }
  }
  const extracting: number[] = [];
  const inFlight: number[] = [];
  const queued: number[] = [];
  for (let index = 0; index < state.records; index += 1) {
    const page = pageOf(records, index);
    assert(!urls.has(page.url), `${page.url} is there once`);
    urls.add(page.url);
    const letters = rows.get(`z/${Math.floor(index / 2_000)}`);
    assert(letters?.type === "letters");
    const letter = letters.letters[index % 2_000];
    const { settledAs, status } = page;
    if (settledAs !== undefined) {
      assert(!numbers.has(settledAs), "a number of its own");
      numbers.add(settledAs);
      assert.equal(letter, status[0]);
      assert(letters.settledAs >= settledAs);
      if (status === "skipped") counts.skipped += 1;
      else counts.finished += 1;
    } else {
      assert.equal(letter, "q");
      if (status === "queued") queued.push(index);
      else if (status === "extracting") extracting.push(index);
      else inFlight.push(index);
    }
    if (status !== "skipped") counts.total += 1;
  }
  const sorted = (list: number[]) => list.toSorted((one, other) => one - other);
  assert.deepEqual(sorted(inQueues), queued, "what is queued is in a queue");
  assert.equal(state.queued, queued.length);
  assert.equal(state.inFlight, inFlight.length + extracting.length);
  assert.equal(state.total, counts.total);
  assert.equal(state.finished, counts.finished);
  assert(state.skipped >= counts.skipped);
  if (state.status !== "running") return;
  assert.deepEqual(sorted(inTurns), inFlight, "what is under way is in a turn");
  assert.equal(state.total, state.queued + state.inFlight + state.finished);
}
