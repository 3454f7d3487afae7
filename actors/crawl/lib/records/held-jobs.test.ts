import { setImmediate as immediate } from "node:timers/promises";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { crawlRequestBlob, encryptCrawlRequest } from "../../../../schemas/crawl/stored-request.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { RequestKeyNotOpened } from "../../../rendering/lib/request-keys/request-keys.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { PageLoader } from "../load/page-loader.ts";
import { HeldJobs, JOB_KEPT_MS, JOBS_KEPT_BYTES_MAX, JOBS_KEPT_MAX } from "./held-jobs.ts";

const ACCOUNT = "a".repeat(32);
const jobId = (number: number) => number.toString(16).padStart(32, "0");

describe("HeldJobs", () => {
  let bus: BusActors;
  let blobs: BlobStore;
  let reads: string[];
  /** Inputs of the calls that open keys. The reply to a call is the sealed text without its first word. */
  let asked: { account: string; job: string; sealed: string }[];
  let isKeyAway: boolean;
  let opened: string[];
  let closed: string[];
  let clock: SkippingClock;
  let jobs: HeldJobs;
  /** Error with which the next opening of a loader fails. */
  let failure: Error | undefined;

  before(async () => {
    bus = await busActors({});
    blobs = new BlobStore(bus.bus, systemClock);
  });
  after(() => bus.stop());
  beforeEach(() => {
    [reads, asked, opened, closed] = [[], [], [], []];
    failure = undefined;
    isKeyAway = false;
    clock = new SkippingClock();
    jobs = new HeldJobs({
      blobs: {
        get: (name, options) => {
          reads.push(name);
          return blobs.get(name, options);
        },
      },
      requestKeys: {
        async open(question) {
          asked.push(question);
          if (isKeyAway) throw new RequestKeyNotOpened("no key");
          return question.sealed.slice("sealed ".length);
        },
      },
      clock,
      open: async ({ account, job }, { url }): Promise<PageLoader> => {
        if (failure) throw failure;
        opened.push(`${account} ${job} ${url}`);
        return {
          load: () => Promise.reject(new Error("nothing is loaded here")),
          async close() {
            closed.push(job);
          },
        };
      },
    });
  });
  afterEach(() => jobs.close());

  const urlOf = (job: string) => `https://${job}.example/`;
  const store = async (job: string) => {
    const request = CrawlRequest.parse({ url: urlOf(job), limit: 3 });
    const json = Buffer.from(JSON.stringify(request));
    const content = await encryptCrawlRequest(json, (key) => `sealed ${key}`);
    return blobs.put(crawlRequestBlob(job), content);
  };
  const hold = (job: string) => jobs.hold({ account: ACCOUNT, job });
  /** Holds a job, opens its loader, and releases it. */
  async function use(job: string) {
    const held = await hold(job);
    await held.loader();
    held.release();
  }

  it("hold() reads a job's request once for all holders, and opens its loader on first use", async () => {
    const job = jobId(1);
    await store(job);
    const [one, other] = await Promise.all([hold(job), hold(job)]);
    expect(one.request).to.deep.include({ url: urlOf(job), limit: 3, render: true });
    expect(other.request).to.equal(one.request);
    expect(opened).to.deep.equal([]);
    const loaders = await Promise.all([one.loader(), other.loader(), one.loader()]);
    expect(new Set(loaders).size).to.equal(1);
    for (const { release } of [one, other]) release();
    await use(job);
    expect(opened).to.deep.equal([`${ACCOUNT} ${job} ${urlOf(job)}`]);
    expect(reads).to.deep.equal([`crawl.${job}.request`]);
    expect(closed).to.deep.equal([]);
  });

  it("hold() refuses a job without a request, and reads again the next time", async () => {
    const job = jobId(2);
    expect((await refusalOf(hold(job))).code).to.equal("not_found");
    await store(job);
    await use(job);
    expect(opened).to.have.length(1);
  });

  it("loader() tries again after it could not be opened", async () => {
    const job = jobId(3);
    await store(job);
    const held = await hold(job);
    failure = new Error("no browser");
    const error = await held.loader().catch((thrown: unknown) => thrown);
    expect(error).to.equal(failure);
    failure = undefined;
    await held.loader();
    expect(opened).to.have.length(1);
    held.release();
  });

  it("release() keeps JOBS_KEPT_MAX unused jobs, and evicts the longest unused of more", async () => {
    const jobs = Array.from({ length: JOBS_KEPT_MAX + 1 }, (_, number) => jobId(100 + number));
    await Promise.all(jobs.map(store));
    const [first = "", second = "", ...others] = jobs;
    const held = await hold(first);
    await held.loader();
    for (const job of [second, ...others.slice(0, -1)]) await use(job);
    expect(closed).to.deep.equal([]);
    await use(others.at(-1) ?? "");
    // The oldest is in use.
    await until("one is closed", () => closed.length > 0);
    expect(closed).to.deep.equal([second]);
    held.release();
    await use(first);
    expect(opened).to.have.length(JOBS_KEPT_MAX + 1);
    await use(second);
    await until("another is closed", () => closed.length > 1);
    expect(closed).to.deep.equal([second, others[0]]);
  });

  it("hold() asks for the key of a request once, and again if nobody had it", async () => {
    const job = jobId(31);
    await store(job);
    isKeyAway = true;
    const error = await hold(job).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RequestKeyNotOpened);
    isKeyAway = false;
    await Promise.all([use(job), use(job)]);
    expect(asked.map((one) => [one.account, one.job])).to.deep.equal([
      [ACCOUNT, job],
      [ACCOUNT, job],
    ]);
    expect(asked[0]?.sealed).to.match(/^sealed .{44}$/);
  });

  it("hold() reads a request that an earlier version stored as JSON", async () => {
    const job = jobId(32);
    const request = CrawlRequest.parse({ url: urlOf(job), limit: 7 });
    await blobs.put(crawlRequestBlob(job), Buffer.from(JSON.stringify(request)));
    const held = await hold(job);
    expect(held.request).to.deep.equal(request);
    expect(asked).to.deep.equal([]);
    held.release();
  });

  it("release() keeps JOBS_KEPT_BYTES_MAX bytes of requests, and evicts the longest unused past it", async () => {
    const closed: string[] = [];
    const sizes = new Map<string, number>();
    const large = new HeldJobs({
      blobs: {
        async *get(name) {
          const content = JSON.stringify(CrawlRequest.parse({ url: urlOf("a") }));
          yield Buffer.from(content.padEnd(sizes.get(name) ?? 0));
        },
      },
      requestKeys: { open: () => Promise.reject(new Error("no request is encrypted here")) },
      clock,
      open: async ({ job }) => ({
        load: () => Promise.reject(new Error("nothing is loaded here")),
        async close() {
          closed.push(job);
        },
      }),
    });
    const useOne = async (job: string, bytes: number) => {
      sizes.set(`crawl.${job}.request`, bytes);
      const held = await large.hold({ account: ACCOUNT, job });
      await held.loader();
      held.release();
    };
    const half = JOBS_KEPT_BYTES_MAX / 2;
    const [first, second, third] = [jobId(101), jobId(102), jobId(103)];
    await useOne(first, half);
    await useOne(second, half);
    await immediate();
    expect(closed).to.deep.equal([]);
    await useOne(third, 1_000);
    await until("one is closed", () => closed.length > 0);
    expect(closed).to.deep.equal([first]);
    await large.close();
  });

  it("release() keeps a job for JOB_KEPT_MS, and no longer", async () => {
    const [job, held] = [jobId(4), jobId(5)];
    await Promise.all([store(job), store(held)]);
    const other = await hold(held);
    await other.loader();
    await use(job);
    clock.skip(JOB_KEPT_MS - 1_000);
    await use(job);
    expect(opened).to.have.length(2);
    clock.skip(JOB_KEPT_MS);
    await until("it is closed", () => closed.length > 0);
    expect(closed).to.deep.equal([job]);
    other.release();
  });

  it("close() closes kept and held jobs", async () => {
    const both = [jobId(6), jobId(7)];
    await Promise.all(both.map(store));
    await use(both[0] ?? "");
    const held = await hold(both[1] ?? "");
    await held.loader();
    await jobs.close();
    expect(closed).to.have.members(both);
    held.release();
  });
});
