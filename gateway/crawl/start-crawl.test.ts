import { expect } from "chai";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import { ActorError } from "../../schemas/errors.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { until } from "../../scripts/testing/until.ts";
import { type TestCrawls, testCrawls } from "../testing/test-crawls.ts";
import { startCrawl } from "./start-crawl.ts";

const ACCOUNT = "a".repeat(32);

describe("startCrawl", () => {
  let crawls: TestCrawls;
  beforeEach(() => {
    crawls = testCrawls();
  });
  const parts = (actors: ActorClient = memoryActors({ actors: crawls.actors })) => ({
    ...crawls,
    actors,
    browserMsPerDay: 0,
    hasModel: false,
    now: () => 0,
    waitMs: 50,
  });
  const request = CrawlRequest.parse({ url: "http://a", render: false });

  it("startCrawl() starts without the robots.txt if it is not known in time", async () => {
    crawls.consult = () => ({ known: false });
    const startedAt = performance.now();
    const id = await startCrawl(parts(), ACCOUNT, request, new AbortController().signal);
    expect(performance.now() - startedAt).to.be.within(45, 5_000);
    expect(crawls.jobs.get(id)?.account).to.equal(ACCOUNT);
    expect(crawls.live.watchers).to.equal(0);
  });

  it("startCrawl() consults no site for an account that may start no crawl, and names the account to the site", async () => {
    await startCrawl(parts(), ACCOUNT, request, new AbortController().signal);
    expect(crawls.consulted).to.have.length(1);
    expect(crawls.consulted[0]?.account).to.equal(ACCOUNT);
    crawls.full = "Cannot start crawl: 100 run already";
    const { signal } = new AbortController();
    const refused = await startCrawl(parts(), ACCOUNT, request, signal).catch((error) => error);
    expect(refused).to.include({ code: "limit_reached" });
    expect(crawls.consulted).to.have.length(1);
  });

  it("startCrawl() starts nothing for a client that disconnects while it waits", async () => {
    crawls.consult = () => ({ known: false });
    const leaving = new AbortController();
    const starting = startCrawl(
      { ...parts(), waitMs: 60_000 },
      ACCOUNT,
      request,
      leaving.signal,
    ).catch((error: unknown) => error);
    await until("it waits", () => crawls.consulted.length === 2);
    const left = new ActorError("cancelled", "Cannot answer: the client left");
    leaving.abort(left);
    expect(await starting).to.equal(left);
    expect(crawls.jobs.size).to.equal(0);
    expect(crawls.blobs.blobs.size).to.equal(0);
    expect(crawls.live.watchers).to.equal(0);
  });

  it("startCrawl() completes the start once the request is stored, even if the client disconnects", async () => {
    const leaving = new AbortController();
    const put = crawls.blobs.put.bind(crawls.blobs);
    crawls.blobs.put = async (...given) => {
      const stored = await put(...given);
      leaving.abort();
      return stored;
    };
    const id = await startCrawl(parts(), ACCOUNT, request, leaving.signal);
    expect(crawls.jobs.has(id)).to.equal(true);
  });

  it("startCrawl() removes the request if its storing fails, because it may be stored all the same", async () => {
    const put = crawls.blobs.put.bind(crawls.blobs);
    const left = new ActorError("cancelled", "Cannot answer: the client left");
    crawls.blobs.put = async (...given) => {
      await put(...given);
      throw left;
    };
    const starting = startCrawl(parts(), ACCOUNT, request, new AbortController().signal);
    expect(await starting.catch((error: unknown) => error)).to.equal(left);
    expect(crawls.jobs.size).to.equal(0);
    expect(crawls.blobs.blobs.size).to.equal(0);
  });
});
