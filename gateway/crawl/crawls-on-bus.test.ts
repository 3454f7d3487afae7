import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { get, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { pino } from "pino";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { HOST_REQUESTS_IN_FLIGHT_MAX } from "../../schemas/crawl/limits.ts";
import { until } from "../../scripts/testing/until.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { type RunningGateway, startGateway } from "../main.ts";
import { crawlBus } from "../testing/crawl-bus.ts";
import { testConfig } from "../testing/test-gateway.ts";

const MB = 1024 * 1024;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

/** Returns the bytes of reachable memory. */
function heldBytes(): number {
  collectGarbage();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

describe("crawls on the bus", function () {
  this.timeout(180_000);
  let bus: Awaited<ReturnType<typeof crawlBus>>;
  let gateway: RunningGateway;
  let dataDir: string;
  let token: string;
  let crawls: string;
  before(async () => {
    bus = await crawlBus();
    dataDir = await mkdtemp(join(tmpdir(), "gateway-"));
    const config = { ...testConfig, dataDir };
    gateway = await startGateway({ ...bus, config, logger: pino({ level: "fatal" }) });
    const credentials = JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));
    token = credentials.api_token;
    crawls = `http://127.0.0.1:${gateway.port}/v4/accounts/${credentials.account_id}/browser-rendering/crawl`;
  });
  after(async () => {
    await gateway?.stop();
    await bus?.stop();
    await rm(dataDir, { recursive: true });
  });

  const ask = async (path = "", method = "GET", json?: object) => {
    const response = await fetch(crawls + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(json && { body: JSON.stringify(json) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
    return { status: response.status, ...((await response.json()) as any) };
  };
  const start = async (json: object): Promise<string> => {
    const { status, result, errors } = await ask("", "POST", { render: false, maxAge: 0, ...json });
    expect(status, JSON.stringify(errors)).to.equal(200);
    return result;
  };
  const ended = (id: string) =>
    until(
      "the end of the crawl",
      async () => {
        const { result } = await ask(`/${id}?limit=1`);
        return result.status !== "running" && result;
      },
      90_000,
    );

  it("crawls a site, sends its pages live, and returns the records", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\nDisallow: /no\n");
    site.page(
      "/",
      '<title>Home</title><h1>Hi</h1><a href="/a">a</a><a href="/no">no</a><a href="/b">b</a>',
    );
    site.page("/a", "<title>A</title><p>one</p>");
    const id = await start({ url: `${site.url}/#x`, formats: ["html", "markdown"] });
    const { events, over } = await follow(id);
    await over;
    const { result } = await ask(`/${id}`);
    expect(result).to.deep.include({ id, status: "completed", total: 4, finished: 4, skipped: 0 });
    expect(result.browserSecondsUsed).to.equal(0);
    const byUrl = new Map(result.records.map((record: { url: string }) => [record.url, record]));
    expect([...byUrl.keys()]).to.deep.equal(
      ["/", "/a", "/no", "/b"].map((path) => site.url + path),
    );
    const home = result.records[0];
    expect(home.status).to.equal("completed");
    expect(home.html).to.contain("<h1>Hi</h1>");
    expect(home.markdown).to.contain("# Hi");
    expect(home.metadata).to.deep.include({ status: 200, title: "Home", url: `${site.url}/` });
    expect(result.records[2].status).to.equal("disallowed");
    expect(result.records[2].reason).to.contain("/no");
    expect(result.records[3].status).to.equal("errored");
    expect(result.records[3].metadata.status).to.equal(404);

    expect(events[0]?.event).to.equal("status");
    expect(events.at(-1)?.event).to.equal("finished");
    expect(events.at(-1)?.data).to.deep.include({ id, status: "completed", finished: 4 });

    // The list learns the end by mail.
    const listed = async () => (await ask()).result[0];
    const { endedAt } = result;
    await until("the list has the end", async () => (await listed()).endedAt === endedAt);
    const { createdAt } = result;
    const entry = { id, url: `${site.url}/`, status: "completed", createdAt, endedAt };
    const counts = { total: 4, finished: 4, skipped: 0 };
    expect(await listed()).to.deep.equal({ ...entry, ...counts });
    const isKept = () => bus.blobs.has(`crawl.${id}.request`);
    await until("its request to be removed", async () => !(await isKept()));
    expect((await ask(`/${id}`)).result.records[0].html).to.equal(home.html);
    const again = await ask(`/${id}`, "DELETE");
    expect(again.status).to.equal(409);
    expect(again.errors[0].code).to.equal(1006);
  });

  it("an unreachable start URL ends the crawl as errored, with the reason", async () => {
    const site = await WebSite.start();
    const { url } = site;
    await site[Symbol.asyncDispose]();
    const { status, messages, records } = await ended(await start({ url: `${url}/` }));
    expect(status).to.equal("errored");
    expect(messages.join()).to.match(/^The start URL could not be fetched: ./);
    expect(records[0].status).to.equal("errored");
    expect(messages.join()).to.contain(records[0].reason);
  });

  it("makes no more requests of a cancelled crawl, even in granted turns", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    const pages = Array.from({ length: 250 }, (_, index) => `/${index}`);
    site.page("/", pages.map((path) => `<a href="${path}">x</a>`).join(""));
    const slow = (_: IncomingMessage, response: ServerResponse) => {
      setTimeout(() => response.end("<p>x"), 100);
    };
    for (const path of pages) site.page(path, slow);
    const id = await start({ url: `${site.url}/`, limit: 251 });
    const fetched = () => site.paths.filter((path) => pages.includes(path)).length;
    await until("some pages are fetched", () => fetched() >= 20);
    expect((await ask(`/${id}`, "DELETE")).status).to.equal(200);
    const before = fetched();
    // The second crawl gets its turn after the cancelled one. When it has ended, no further requests of the cancelled
    // crawl follow.
    site.page("/next", "<p>next</p>");
    await ended(await start({ url: `${site.url}/next`, limit: 1 }));
    expect(fetched() - before).to.be.at.most(HOST_REQUESTS_IN_FLIGHT_MAX);
  });

  it("walks every record once by its cursor, whatever the limit and status", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    const pages = Array.from({ length: 60 }, (_, index) => `/${index}`);
    site.page("/", pages.map((path) => `<a href="${path}">x</a>`).join(""));
    for (const path of pages) site.page(path, `<p>${path}</p>`);
    const id = await start({ url: `${site.url}/`, limit: 61 });
    const whileItRuns = await walk(id, "limit=7&status=completed");
    expect(new Set(whileItRuns).size).to.equal(whileItRuns.length);
    await ended(id);
    const all = ["/", ...pages].map((path) => site.url + path);
    expect(await walk(id, "limit=7")).to.deep.equal(all);
    expect(await walk(id, "limit=1000")).to.deep.equal(all);
    expect(await walk(id, "limit=13&status=completed")).to.have.members(all);
    expect(await walk(id, "status=errored")).to.deep.equal([]);
    const { status, errors } = await ask(`/${id}?cursor=nonsense`);
    expect(status).to.equal(400);
    expect(errors[0].source).to.deep.equal({ pointer: "/query/cursor" });
  });

  it("cancels queued pages before it replies", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 60\n");
    site.page("/", '<a href="/a">a</a><a href="/b">b</a>');
    const id = await start({ url: `${site.url}/` });
    const { events, over } = await follow(id);
    expect((await ask(`/${id}`, "DELETE")).result.job_id).to.equal(id);
    const { result } = await ask(`/${id}`);
    expect(result.status).to.equal("cancelled_by_user");
    for (const { status } of result.records) expect(status).to.not.equal("queued");
    await over;
    expect(events.at(-1)?.data.status).to.equal("cancelled_by_user");
    expect((await ask(`/${id}`, "DELETE")).status).to.equal(409);
  });

  it("deletes a crawl with all its data when it expires, and not while it runs", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    site.page("/", '<p>home<a href="/a">a</a>');
    let mayEnd = () => {};
    site.page("/a", (_, response) => {
      mayEnd = () => response.end("<p>a");
    });
    const id = await start({ url: `${site.url}/`, source: "links" });
    await until("the last page is asked for", () => site.paths.includes("/a"));
    // A reminder `expire` that arrives too early must not change a running job.
    await bus.actors.send(crawlJob, id, "expire", {});
    const accountId = crawls.split("/").at(-3) ?? "";
    const blobs = async () => {
      const read = { account: accountId, count: 10 };
      const { entries } = await bus.actors.call(crawlJob, id, "list", read);
      return entries.flatMap(({ entry }) => entry.blobs.map(({ name }) => name));
    };
    await until("the first page has its record", async () => (await blobs()).length === 1);
    mayEnd();
    const { status } = await ended(id);
    expect(status).to.equal("completed");
    const names = await blobs();
    expect(names).to.have.length(2);

    await bus.actors.send(crawlJob, id, "expire", {});
    await until("the job is gone", async () => (await ask(`/${id}`)).status === 404);
    for (const name of [...names, `crawl.${id}.request`]) {
      await until(`${name} is removed`, async () => !(await bus.blobs.has(name)));
    }
    const listed = async () => (await ask()).result.map((entry: { id: string }) => entry.id);
    await until("the list has forgotten it", async () => !(await listed()).includes(id));
    expect((await ask(`/${id}`, "DELETE")).status).to.equal(404);
    expect((await ask(`/${id}/events`)).status).to.equal(404);
  });

  it("refuses a crawl that the site's content signal forbids, before it fetches any page", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n");
    const { status, errors } = await ask("", "POST", { url: `${site.url}/`, render: false });
    expect(status).to.equal(400);
    expect(errors[0].message).to.equal(
      "Crawl purpose(s) completely disallowed by Content-Signal directive",
    );
    expect(site.paths).to.deep.equal(["/robots.txt"]);
    await start({ url: `${site.url}/`, crawlPurposes: ["search"] });
  });

  it("returns large bodies in little memory", async () => {
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    const body = `<p>${"x".repeat(8 * MB)}</p>`;
    const pages = ["/a", "/b", "/c"];
    site.page("/", pages.map((path) => `<a href="${path}">x</a>`).join(""));
    for (const path of pages) site.page(path, body);
    const id = await start({ url: `${site.url}/` });
    await ended(id);
    const before = heldBytes();
    let peak = 0;
    let looked = 0;
    let cursor = "";
    let bytes = 0;
    do {
      const response = await fetch(`${crawls}/${id}?${cursor}`, {
        headers: { Authorization: `Bearer ${token}` },
      });
      let tail = "";
      for await (const chunk of response.body ?? []) {
        bytes += chunk.length;
        if (bytes - looked > MB / 2) {
          looked = bytes;
          peak = Math.max(peak, heldBytes() - before);
        }
        tail = (tail + Buffer.from(chunk).toString()).slice(-200);
      }
      const [, next] = /"cursor":"([^"]+)"\}\}$/.exec(tail) ?? [];
      cursor = next === undefined ? "" : `cursor=${next}`;
    } while (cursor !== "");
    expect(bytes).to.be.within(24 * MB, 25 * MB);
    // The memory of gateway, bus and client in this one process.
    expect(peak).to.be.below(32 * MB);
  });

  async function walk(id: string, query: string): Promise<string[]> {
    const urls: string[] = [];
    for (let cursor = ""; ; ) {
      const { result } = await ask(`/${id}?${query}${cursor}`);
      urls.push(...result.records.map(({ url }: { url: string }) => url));
      if (result.cursor === undefined) return urls;
      cursor = `&cursor=${result.cursor}`;
    }
  }

  /** Returns the events, and a promise of their end. */
  async function follow(id: string) {
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the data of whatever event comes.
    const events: { event: string; data: any }[] = [];
    const asked = get(`${crawls}/${id}/events`, { headers: { Authorization: `Bearer ${token}` } });
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      for (const [, event = "", data = ""] of text.matchAll(
        /event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g,
      )) {
        events.push({ event, data: JSON.parse(data) });
      }
      const end = text.lastIndexOf("\n\n");
      if (end >= 0) text = text.slice(end + 2);
    });
    return { events, over: once(response, "end") };
  }
});
