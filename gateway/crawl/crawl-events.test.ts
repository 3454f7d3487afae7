import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { expect } from "chai";
import express from "express";
import type { CrawlSummary } from "../../schemas/crawl/crawl-job.ts";
import { EVENT_STREAMS_OF_ACCOUNT_MAX } from "../../schemas/crawl/limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { type MemoryActors, memoryActors } from "../../scripts/testing/memory-actors.ts";
import { until } from "../../scripts/testing/until.ts";
import { type TestCrawls, testCrawls } from "../testing/test-crawls.ts";
import { CrawlEvents } from "./crawl-events.ts";

interface Event {
  event: string;
  id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the data of whatever event comes.
  data: any;
}

describe("CrawlEvents", () => {
  let crawls: TestCrawls;
  let actors: MemoryActors;
  let isStillAllowed: () => Promise<boolean>;
  let server: Server;
  let stopping: AbortController;
  let failures: unknown[];
  let over: number;
  let job: string;
  let accountId: string;

  const listen = async ({ pollMs = 60_000, keepAliveMs = 60_000, streamsMax = 1_000 } = {}) => {
    const { live } = crawls;
    const times = { pollMs, keepAliveMs };
    const parts = { actors, live, stopping: stopping.signal, streamsMax, ...times };
    const events = new CrawlEvents(parts);
    const app = express();
    app.get("/", async (_request, response) => {
      const following = { accountId, isStillAllowed: () => isStillAllowed() };
      const leaving = new AbortController();
      response.once("close", () => leaving.abort(new Error("the client left")));
      await events
        .follow({ job, ...following, signal: leaving.signal }, response)
        .catch((error: unknown) => {
          failures.push(error);
          response.status(500).end();
        })
        .finally(() => over++);
    });
    server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
  };
  beforeEach(async () => {
    crawls = testCrawls();
    actors = memoryActors({ actors: [...crawls.actors] });
    stopping = new AbortController();
    failures = [];
    over = 0;
    isStillAllowed = async () => true;
    accountId = "a".repeat(32);
    job = crawls.add(accountId, { total: 3, finished: 1 });
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    await until("every stream has ended", () => crawls.live.watchers === 0);
    expect(failures).to.deep.equal([]);
  });

  const change = (summary: Partial<CrawlSummary>) => {
    Object.assign(crawls.jobs.get(job)?.summary ?? {}, summary);
  };
  const say = (news: object) =>
    crawls.live.show("crawl-job", job, {
      status: "running",
      total: 3,
      finished: 1,
      skipped: 0,
      pages: [],
      ...news,
    });
  const page = (index: number) => ({
    index,
    url: `https://example.com/${index}`,
    status: "completed",
    httpStatus: 200,
  });

  it("follow() sends the current job, then pages and progress, then the end", async () => {
    await listen();
    const { response, events } = await follow();
    expect(response.headers["content-type"]).to.match(/^text\/event-stream/);
    expect(response.headers["cache-control"]).to.equal("no-store, no-transform");
    expect(response.headers["x-accel-buffering"]).to.equal("no");
    await until("status", () => events.length === 1);
    expect(events[0]?.data).to.deep.include({ id: job, status: "running", total: 3, finished: 1 });
    say({ finished: 2, pages: [page(1)] });
    await until("page and progress", () => events.length === 3);
    say({ finished: 2, skipped: 1 });
    await until("progress", () => events.length === 4);
    change({ status: "completed", finished: 3, skipped: 1, endedAt: 5 });
    say({ status: "completed", finished: 3, skipped: 1, pages: [page(2)] });
    await once(response, "end");
    expect(events.slice(1)).to.deep.equal([
      { event: "page", data: page(1) },
      { event: "progress", data: { status: "running", total: 3, finished: 2, skipped: 0 } },
      { event: "progress", data: { status: "running", total: 3, finished: 2, skipped: 1 } },
      { event: "page", data: page(2) },
      {
        event: "finished",
        id: "finished",
        data: {
          id: job,
          status: "completed",
          browserSecondsUsed: 0,
          total: 3,
          finished: 3,
          skipped: 1,
          createdAt: "1970-01-01T00:00:00.000Z",
          endedAt: "1970-01-01T00:00:00.005Z",
          messages: [],
        },
      },
    ]);
  });

  it("follow() sends progress and the end without live messages", async () => {
    await listen({ pollMs: 20 });
    const { response, events } = await follow();
    change({ finished: 2 });
    await until("progress", () => events.at(-1)?.event === "progress");
    change({ status: "cancelled_by_user" });
    await once(response, "end");
    expect(events.map(({ event }) => event)).to.deep.equal(["status", "progress", "finished"]);
    expect(events.at(-1)?.data.status).to.equal("cancelled_by_user");
  });

  it("follow() reports missed updates, and reads the current state at once", async () => {
    await listen();
    const { events } = await follow();
    await until("status", () => events.length === 1);
    change({ finished: 2 });
    crawls.live.miss("crawl-job", job);
    await until("progress", () => events.length === 3);
    expect(events.slice(1)).to.deep.equal([
      { event: "missed", data: { pages: null } },
      { event: "progress", data: { status: "running", total: 3, finished: 2, skipped: 0 } },
    ]);
  });

  it("follow() ends at once for an ended job, and is empty for a client that knows", async () => {
    change({ status: "errored" });
    await listen();
    const { response, events } = await follow();
    await once(response, "end");
    expect(events.map(({ event }) => event)).to.deep.equal(["status", "finished"]);
    const again = await follow({ "Last-Event-ID": "finished" });
    expect(again.response.statusCode).to.equal(204);
  });

  it("follow() continues with the current state for a client that reconnects", async () => {
    await listen();
    const first = await follow();
    await until("status", () => first.events.length === 1);
    first.response.destroy();
    await until("the stream has ended", () => over === 1);
    say({ finished: 2, pages: [page(1)] });
    change({ finished: 2 });
    const second = await follow();
    await until("status", () => second.events.length === 1);
    expect(second.events[0]?.data.finished).to.equal(2);
  });

  it("follow() keeps a silent stream open", async () => {
    await listen({ pollMs: 20, keepAliveMs: 20 });
    const { comments } = await follow();
    await until("comments", () => comments.length >= 3);
    expect(new Set(comments)).to.deep.equal(new Set([": still here"]));
  });

  it("follow() ends without an end of the job when the gateway stops", async () => {
    await listen();
    const { response, events } = await follow();
    await until("status", () => events.length === 1);
    stopping.abort();
    await once(response, "end");
    expect(events).to.have.length(1);
  });

  it("follow() ends when the client is no longer allowed to follow", async () => {
    await listen({ pollMs: 20 });
    const { response, events } = await follow();
    await until("status", () => events.length === 1);
    isStillAllowed = async () => false;
    await once(response, "end");
    expect(events).to.have.length(1);
  });

  it("follow() goes on while nobody knows whether the client is allowed to", async () => {
    await listen({ pollMs: 20 });
    let checks = 0;
    isStillAllowed = () => {
      checks += 1;
      return Promise.reject(new ActorError("unavailable", "Cannot reach api-token"));
    };
    const { response, events } = await follow();
    await until("checks", () => checks > 3);
    isStillAllowed = async () => true;
    change({ status: "completed" });
    await once(response, "end");
    expect(events.at(-1)?.event).to.equal("finished");
  });

  it("follow() ends when the job is gone", async () => {
    await listen({ pollMs: 20 });
    const { response, events } = await follow();
    await until("status", () => events.length === 1);
    crawls.jobs.clear();
    await once(response, "end");
  });

  it("follow() goes on while the job cannot be reached", async () => {
    await listen({ pollMs: 20 });
    const { response, events } = await follow();
    await until("status", () => events.length === 1);
    const { call } = actors;
    let calls = 0;
    actors.call = () => {
      calls += 1;
      return Promise.reject(new ActorError("unavailable", "Cannot reach crawl-job"));
    };
    await until("calls", () => calls > 3);
    actors.call = call;
    change({ status: "completed" });
    await once(response, "end");
    expect(events.at(-1)?.event).to.equal("finished");
  });

  it("follow() counts events that a slow client misses, and buffers no more", async () => {
    await listen();
    const { response, events } = await follow();
    await until("status", () => events.length === 1);
    response.pause();
    const pages = Array.from({ length: 100 }, (_, index) => ({
      ...page(index),
      url: `https://example.com/${"x".repeat(5_000)}`,
    }));
    // 250 MB: far more than sockets hold.
    const before = process.memoryUsage().rss;
    for (let said = 0; said < 500; said++) {
      say({ finished: said, pages });
      if (said % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(process.memoryUsage().rss - before).to.be.below(64 * 1024 * 1024);
    response.resume();
    await until("the client has caught up", () => events.length > 100);
    change({ status: "completed" });
    say({ status: "completed" });
    await once(response, "end");
    const told = events.filter(({ event }) => event === "page").length;
    const missed = events
      .filter(({ event }) => event === "missed")
      .reduce((sum, { data }) => sum + data.pages, 0);
    expect(told + missed).to.equal(50_000);
    expect(missed).to.be.above(10_000);
  });

  it("follow() refuses a stream past the limit of an account until one ends", async () => {
    await listen();
    const followed = await Promise.all(
      Array.from({ length: EVENT_STREAMS_OF_ACCOUNT_MAX }, () => follow()),
    );
    expect((await follow()).response.statusCode).to.equal(500);
    expect(failures.splice(0).map((error) => Object(error).code)).to.deep.equal(["rate_limited"]);
    followed[0]?.response.destroy();
    await until("one has ended", () => over === 2);
    expect((await follow()).response.statusCode).to.equal(200);
  });

  it("follow() refuses a stream past the limit of a gateway", async () => {
    await listen({ streamsMax: 2 });
    await Promise.all([follow(), follow()]);
    expect((await follow()).response.statusCode).to.equal(500);
    expect(failures.splice(0).map((error) => Object(error).code)).to.deep.equal(["busy"]);
  });

  it("follow() leaves streams to another account when one takes what it can", async () => {
    await listen({ streamsMax: EVENT_STREAMS_OF_ACCOUNT_MAX });
    const all = Array.from({ length: EVENT_STREAMS_OF_ACCOUNT_MAX }, () => follow());
    const refused = (await Promise.all(all)).filter(({ response: { statusCode } }) => {
      return statusCode !== 200;
    });
    const codes = new Set(failures.splice(0).map((error) => Object(error).code));
    expect([refused.length, [...codes]]).to.deep.equal([20, ["busy"]]);
    accountId = "b".repeat(32);
    job = crawls.add(accountId, { total: 3, finished: 1 });
    expect((await follow()).response.statusCode).to.equal(200);
  });

  async function follow(headers: Record<string, string> = {}) {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const asked = get({ port: address.port, host: "127.0.0.1", headers, agent: false });
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    response.on("error", () => {}); // A test may leave during the response.
    const events: Event[] = [];
    const comments: string[] = [];
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        if (block.startsWith(":")) comments.push(block);
        else if (block.startsWith("event:")) events.push(eventOf(block));
      }
    });
    return { response, events, comments };
  }
});

function eventOf(block: string): Event {
  const fields = Object.fromEntries(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
  const { event = "", data = "", id } = fields;
  return { event, data: JSON.parse(data), ...(id === undefined ? {} : { id }) };
}
