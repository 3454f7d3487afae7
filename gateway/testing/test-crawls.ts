/** Crawl jobs that fetch no pages, for tests of the gateway. The test decides which records they have. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { defineActor } from "../../actors/runtime/kinds/define-actor.ts";
import type { Contract, Messages } from "../../schemas/contract.ts";
import {
  type CrawlPlan,
  type CrawlSummary,
  crawlJob,
  type RecordEntry,
} from "../../schemas/crawl/crawl-job.ts";
import { type CrawlListEntry, crawlList } from "../../schemas/crawl/crawl-list.ts";
import { type CrawlIntent, site } from "../../schemas/crawl/site.ts";
import { ActorError } from "../../schemas/errors.ts";
import { MemoryBlobs } from "./memory-blobs.ts";
import { MemoryLive } from "./memory-live.ts";

export interface TestJob {
  account: string;
  plan: CrawlPlan;
  /** Name of the blob with the whole request. */
  request: string;
  summary: CrawlSummary;
  entries: RecordEntry[];
}

/** A record with its body: HTML with this number of bytes, or the JSON members. */
export interface TestRecord extends Partial<Omit<RecordEntry, "blobs">> {
  bodies?: readonly (string | number)[];
}

type Consulted = { known: false } | { known: true; refusal?: string };

export interface TestCrawls {
  actors: ReturnType<typeof defineTestActors>;
  blobs: MemoryBlobs;
  live: MemoryLive;
  /** Seals the keys of requests. */
  secrets: SecretBox;
  jobs: Map<string, TestJob>;
  lists: Map<string, CrawlListEntry[]>;
  /** For each listing of records, the number of requested records. */
  listed: number[];
  /** The sites that crawls consulted, with the intent and the account of the crawl. */
  consulted: { host: string; intent: CrawlIntent; account?: string | undefined }[];
  consult(host: string): Consulted;
  /** Why no more crawls are admitted. */
  full: string | undefined;
  /** Adds a job of an account; returns its id. */
  add(account: string, summary?: Partial<CrawlSummary>, records?: readonly TestRecord[]): string;
}

export function testCrawls(): TestCrawls {
  const crawls: Omit<TestCrawls, "actors"> = {
    blobs: new MemoryBlobs(),
    live: new MemoryLive(),
    secrets: new SecretBox([newSecretKey()]),
    jobs: new Map(),
    lists: new Map(),
    listed: [],
    consulted: [],
    consult: () => ({ known: true }),
    full: undefined,
    add(account, summary = {}, records = []) {
      const id = randomBytes(16).toString("hex");
      const entries = records.map((record, index) => entryOf(crawls.blobs, id, index, record));
      crawls.jobs.set(id, {
        account,
        plan: PLAN,
        request: "",
        summary: { ...SUMMARY, total: entries.length, ...summary },
        entries,
      });
      return id;
    },
  };
  return Object.assign(crawls, { actors: defineTestActors(crawls) });
}

const PLAN: CrawlPlan = {
  url: "https://example.com/",
  limit: 10,
  depth: 10,
  source: "all",
  formats: ["html"],
  render: false,
  options: {},
  intent: { purposes: ["search"] },
};

const SUMMARY: CrawlSummary = {
  status: "running",
  browserMs: 0,
  total: 0,
  finished: 0,
  skipped: 0,
  createdAt: 0,
  messages: [],
};

function entryOf(
  { blobs }: MemoryBlobs,
  job: string,
  index: number,
  { bodies = [], ...record }: TestRecord,
): RecordEntry {
  const stored = bodies.map((body, part) => {
    const frame = '"html":""';
    const members =
      typeof body === "string" ? body : `${frame.slice(0, -1)}${"x".repeat(body - frame.length)}"`;
    const name = `crawl.${job}.${index}.${part}`;
    const content = Buffer.from(members);
    blobs.set(name, content);
    return { name, bytes: content.length };
  });
  const url = `https://example.com/${index}`;
  return { index, url, status: "completed", ...record, blobs: stored };
}

function defineTestActors(crawls: Omit<TestCrawls, "actors">) {
  const None = z.object({});
  const kept = { state: None, initial: {} };
  const find = (key: string, account: string) => {
    const job = crawls.jobs.get(key);
    if (job?.account === account) return job;
    throw new ActorError("not_found", "Cannot find crawl: unknown here");
  };
  const jobs = defineActor(crawlJob, {
    ...kept,
    handlers: {
      ...ignoring(crawlJob),
      start(state, { account, plan, request }, { key, now }) {
        const summary = { ...SUMMARY, total: 1, createdAt: now };
        const entries = [{ index: 0, url: plan.url, status: "queued" as const, blobs: [] }];
        crawls.jobs.set(key, { account, plan, request: request.name, summary, entries });
        return { state, reply: {} };
      },
      get: (state, { account }, { key }) => ({ state, reply: find(key, account).summary }),
      list(state, { account, cursor, status, count }, { key }) {
        const { summary, entries } = find(key, account);
        crawls.listed.push(count);
        const from = readCursor(cursor);
        const fitting = entries
          .filter((entry) => entry.index >= from && (status ?? entry.status) === entry.status)
          .map((entry) => ({ entry, cursor: `c${entry.index + 1}` }));
        const more = fitting.length > count;
        return { state, reply: { summary, entries: fitting.slice(0, count), more } };
      },
      cancel(state, { account }, { key, now }) {
        const { summary } = find(key, account);
        if (summary.status !== "running") {
          throw new ActorError("conflict", `Cannot cancel crawl: it is ${summary.status}`);
        }
        Object.assign(summary, { status: "cancelled_by_user", endedAt: now });
        return { state, reply: {} };
      },
    },
  });
  const lists = defineActor(crawlList, {
    ...kept,
    handlers: {
      ...ignoring(crawlList),
      admit(state) {
        if (crawls.full !== undefined) throw new ActorError("limit_reached", crawls.full);
        return { state, reply: {} };
      },
      list(state, { cursor, status, count }, { key }) {
        const from = readCursor(cursor);
        const fitting = (crawls.lists.get(key) ?? [])
          .filter((entry) => (status ?? entry.status) === entry.status)
          .slice(from);
        const entries = fitting.slice(0, count);
        const next = fitting.length > count ? { cursor: `c${from + count}` } : {};
        return { state, reply: { entries, ...next } };
      },
    },
  });
  const sites = defineActor(site, {
    ...kept,
    handlers: {
      ...ignoring(site),
      consult(state, { intent, account }, { key }) {
        crawls.consulted.push({ host: key, intent, account });
        return { state, reply: crawls.consult(key) };
      },
    },
  });
  return [jobs, lists, sites];
}

/** Returns handlers that do nothing, for messages that the gateway does not send. */
function ignoring<M extends Messages>({ messages }: Contract<M>) {
  const ignored = <S>(state: S) => ({ state });
  return Object.fromEntries(Object.keys(messages).map((name) => [name, ignored])) as {
    // biome-ignore lint/suspicious/noExplicitAny: the replies of calls that nobody makes.
    [N in keyof M]: any;
  };
}

function readCursor(cursor = "c0"): number {
  const [, from] = /^c(\d+)$/.exec(cursor) ?? [];
  if (from === undefined) throw new ActorError("invalid_request", "Cannot list: unknown cursor");
  return Number(from);
}
