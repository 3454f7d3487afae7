import { once } from "node:events";
import { request } from "node:http";
import { expect } from "chai";
import { NO_APP } from "../../schemas/apps/outgoing-webhook.ts";
import { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import {
  CRAWL_ANSWER_BYTES_MAX,
  CRAWL_READS_OF_ACCOUNT_MAX,
  CRAWL_REQUEST_BYTES_MAX,
} from "../../schemas/crawl/limits.ts";
import { decryptCrawlRequest } from "../../schemas/crawl/stored-request.ts";
import { browserTime } from "../../schemas/rendering/browser-time.ts";
import { requestKeyName } from "../../schemas/rendering/request-key.ts";
import { until } from "../../scripts/testing/until.ts";
import { openAccount, START, type TestGateway, testGateway } from "../testing/test-gateway.ts";

const MB = 1024 * 1024;
const UNKNOWN = "0".repeat(32);

describe("routes of crawls", () => {
  let gateway: TestGateway;
  let crawls: string;
  const open = async (options: Parameters<typeof testGateway>[0] = {}) => {
    gateway = await testGateway(options);
    crawls = `/v4/accounts/${gateway.accountId}/browser-rendering/crawl`;
  };
  beforeEach(() => open());
  afterEach(() => gateway.stop());

  const reopen = async (options: Parameters<typeof testGateway>[0]) => {
    await gateway.stop();
    await open(options);
  };
  const start = (json: object, path = crawls) => gateway.ask(path, { method: "POST", json });
  const startedJob = async (json: object) => {
    const { json: answer } = await start(json);
    const job = gateway.crawls.jobs.get(answer?.result);
    if (!job) throw new Error("no job");
    return job;
  };
  const add: TestGateway["crawls"]["add"] = (...given) => gateway.crawls.add(...given);
  const result = async (path: string) => {
    const { status, json, text } = await gateway.ask(path);
    expect(status, text.slice(0, 500)).to.equal(200);
    return json?.result;
  };

  describe("startCrawl()", () => {
    it("returns the job's id, and starts the job with the requested options", async () => {
      const given = {
        url: "https://example.com/a#b",
        limit: 5,
        render: false,
        contentUse: "reference",
        modifiedSince: START / 1_000,
        options: { includePatterns: ["/a/**"] },
      };
      const answer = await start(given);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.json?.result).to.match(/^[0-9a-f]{32}$/);
      const job = gateway.crawls.jobs.get(answer.json?.result);
      expect(job?.account).to.equal(gateway.accountId);
      expect(job?.plan).to.deep.equal({
        url: "https://example.com/a",
        limit: 5,
        depth: 100_000,
        source: "all",
        formats: ["html"],
        render: false,
        modifiedSince: START / 1_000,
        options: { includePatterns: ["/a/**"] },
        intent: { purposes: ["search", "ai-input", "ai-train"], contentUse: "reference" },
      });
      expect(job?.request).to.equal(`crawl.${answer.json?.result}.request`);
      const stored = gateway.crawls.blobs.blobs.get(job?.request ?? "") ?? new Uint8Array();
      const sealedFor = { accountId: gateway.accountId, app: NO_APP };
      const name = requestKeyName(answer.json?.result);
      const request = await decryptCrawlRequest(stored, async (sealed) =>
        gateway.crawls.secrets.open(sealed, { ...sealedFor, name }),
      );
      expect(JSON.parse(Buffer.from(request).toString())).to.deep.equal(CrawlRequest.parse(given));
    });

    it("answers at its alias too, and accepts the query of the public API", async () => {
      const younger = crawls.replace("browser-rendering", "browser-run");
      expect((await start({ url: "http://a" }, `${younger}?cacheTTL=5`)).status).to.equal(200);
    });

    it("refuses each fault with its pointer", async () => {
      const faults: [object, string, RegExp][] = [
        [{}, "/url", /: Missing, expected an absolute URL of at most 16384 characters$/],
        [{ url: "http://a", userAgent: "x" }, "/userAgent", /crawler's name is fixed/],
        [{ url: "http://a", limit: 100_001 }, "/limit", /100000/],
        [{ url: "http://a", html: "x" }, "/html", /Unknown field, expected one of url, limit/],
        [
          { url: "http://a", render: false, viewport: { width: 1, height: 1 } },
          "/viewport",
          /Needs a browser/,
        ],
        [{ url: "http://a", formats: ["json"] }, "/jsonOptions", /Missing/],
        [{ url: "http://a", modifiedSince: START / 1_000 + 1 }, "/modifiedSince", /past/],
        [{ url: "http://a", modifiedSince: START }, "/modifiedSince", /not milliseconds/],
      ];
      for (const [json, pointer, message] of faults) {
        const { status, json: answer } = await start(json);
        expect(status, pointer).to.equal(400);
        expect(answer?.errors, JSON.stringify(answer)).to.have.length(1);
        expect(answer?.errors[0]).to.deep.include({ code: 1001, source: { pointer } });
        expect(answer?.errors[0]?.message).to.match(message);
      }
      expect(gateway.crawls.jobs.size).to.equal(0);
    });

    it("accepts a body of CRAWL_REQUEST_BYTES_MAX and refuses one byte more", async () => {
      const headers = { "Content-Type": "application/json" };
      const sized = (bytes: number) => {
        const body = JSON.stringify({ url: "https://example.com/" }).padEnd(bytes);
        return gateway.ask(crawls, { method: "POST", body, headers });
      };
      expect((await sized(CRAWL_REQUEST_BYTES_MAX)).status).to.equal(200);
      expect((await sized(CRAWL_REQUEST_BYTES_MAX + 1)).status).to.equal(413);
    });

    it("needs a model for json: the service's own, or one named by the request", async () => {
      const json = { url: "http://a", formats: ["json"], jsonOptions: { prompt: "x" } };
      const refused = await start(json);
      expect(refused.status).to.equal(400);
      expect(refused.json?.errors[0]?.source).to.deep.equal({ pointer: "/jsonOptions/custom_ai" });
      const custom_ai = [{ model: "openai/gpt-5", authorization: "Bearer x" }];
      const brought = { ...json, jsonOptions: { prompt: "x", custom_ai } };
      expect((await start(brought)).status).to.equal(200);
      await reopen({ config: { ai: { baseUrl: "https://ai.example" } } });
      expect((await start(json)).status).to.equal(200);
    });

    it("needs browser time where pages are rendered, and none where they are fetched", async () => {
      const used = { ms: 600_000, taskId: "1" };
      await gateway.actors.send(browserTime, gateway.accountId, "used", used);
      await gateway.actors.settled();
      const refused = await start({ url: "http://a" });
      expect(refused.status).to.equal(429);
      expect(refused.json?.errors[0]?.code).to.equal(2002);
      expect(refused.headers.get("retry-after")).to.equal(String(12 * 3_600));
      expect(gateway.crawls.jobs.size).to.equal(0);
      expect((await start({ url: "http://a", render: false })).status).to.equal(200);
    });

    it("refuses a crawl past the account's limit", async () => {
      gateway.crawls.full = "Cannot start crawl: 100 run already";
      const { status, json } = await start({ url: "http://a" });
      expect(status).to.equal(409);
      expect(json?.errors).to.deep.equal([
        { code: 1007, message: "Cannot start crawl: 100 run already" },
      ]);
      expect(gateway.crawls.jobs.size).to.equal(0);
    });

    it("consults the site of the URL's host, and refuses with the public API's text", async () => {
      gateway.crawls.consult = () => ({ known: true, refusal: "Content-Signal says ai-train=no" });
      const { status, json } = await start({ url: "https://EXAMPLE.com:8443/x" });
      expect(status).to.equal(400);
      expect(json?.errors).to.deep.equal([
        {
          code: 1008,
          message: "Crawl purpose(s) completely disallowed by Content-Signal directive",
        },
      ]);
      expect(gateway.crawls.consulted[0]?.host).to.equal("example.com:8443");
      expect(gateway.crawls.jobs.size).to.equal(0);
    });

    it("waits for a robots.txt until the site reports it", async () => {
      let known = false;
      gateway.crawls.consult = () => (known ? { known: true, refusal: "no" } : { known: false });
      const answer = start({ url: "http://a" });
      await until("a subscription", () => gateway.crawls.live.watchers === 1);
      expect(gateway.crawls.jobs.size).to.equal(0);
      known = true;
      gateway.crawls.live.show("site", "a", {});
      expect((await answer).status).to.equal(400);
      expect(gateway.crawls.live.watchers).to.equal(0);
    });

    it("notices a known robots.txt by polling", async () => {
      gateway.crawls.consult = () => ({ known: gateway.crawls.consulted.length > 3 });
      expect((await startedJob({ url: "http://a" })).plan.url).to.equal("http://a/");
      expect(gateway.crawls.consulted.length).to.equal(4);
      expect(gateway.crawls.live.watchers).to.equal(0);
    });
  });

  describe("getCrawl()", () => {
    it("returns the job, and its records with their bodies", async () => {
      const metadata = {
        status: 200,
        title: "One",
        url: "https://example.com/one",
        lastModifiedAt: START,
        cachedAt: START,
        truncated: true,
        contentType: "text/html",
      };
      const id = add(
        gateway.accountId,
        {
          status: "errored",
          browserMs: 1_234,
          total: 2,
          finished: 2,
          skipped: 1,
          createdAt: START,
          endedAt: START + 1,
          messages: ["It rained"],
        },
        [
          { metadata, bodies: ['"html":"<p>ü</p>","markdown":"ü"', '"json":{"a":[1]}'] },
          { status: "disallowed", reason: 'robots.txt says "Disallow: /"' },
          { status: "errored", bodies: [""] },
        ],
      );
      expect(await result(`${crawls}/${id}`)).to.deep.equal({
        id,
        status: "errored",
        browserSecondsUsed: 1.234,
        total: 2,
        finished: 2,
        skipped: 1,
        createdAt: "2026-11-20T12:00:00.000Z",
        endedAt: "2026-11-20T12:00:00.001Z",
        messages: ["It rained"],
        records: [
          {
            url: "https://example.com/0",
            status: "completed",
            metadata: {
              ...metadata,
              lastModifiedAt: "2026-11-20T12:00:00.000Z",
              cachedAt: "2026-11-20T12:00:00.000Z",
            },
            html: "<p>ü</p>",
            markdown: "ü",
            json: { a: [1] },
          },
          {
            url: "https://example.com/1",
            status: "disallowed",
            reason: 'robots.txt says "Disallow: /"',
          },
          { url: "https://example.com/2", status: "errored" },
        ],
      });
      const younger = crawls.replace("browser-rendering", "browser-run");
      expect((await result(`${younger}/${id}`)).records).to.have.length(3);
    });

    it("returns a job without records", async () => {
      const id = add(gateway.accountId);
      const { status, headers, json } = await gateway.ask(`${crawls}/${id}?cacheTTL=5`);
      expect(status).to.equal(200);
      expect(headers.get("content-type")).to.match(/^application\/json/);
      expect(json).to.deep.include({ success: true, errors: [], messages: [] });
      expect(json?.result.records).to.deep.equal([]);
      expect(json?.result).to.not.have.property("cursor");
    });

    it("reads a single record of a thousand if limit is 1, and continues after it", async () => {
      const records = Array.from({ length: 1_000 }, () => ({ bodies: [1_000] }));
      const id = add(gateway.accountId, {}, records);
      const first = await result(`${crawls}/${id}?limit=1`);
      expect(first.records.map(urlOf)).to.deep.equal(["https://example.com/0"]);
      expect(gateway.crawls.listed).to.deep.equal([1]);
      expect(gateway.crawls.blobs.read).to.deep.equal([`crawl.${id}.0.0`]);
      const next = await result(`${crawls}/${id}?limit=2&cursor=${first.cursor}`);
      expect(next.records.map(urlOf)).to.deep.equal([
        "https://example.com/1",
        "https://example.com/2",
      ]);
    });

    it("walks every record once, whatever the limit", async () => {
      const records = Array.from({ length: 250 }, (_, index) => ({ bodies: [20 + index] }));
      const id = add(gateway.accountId, {}, records);
      const all = records.map((_, index) => `https://example.com/${index}`);
      for (const limit of ["", "limit=1000", "limit=100", "limit=101", "limit=250", "limit=7"]) {
        expect((await walk(id, limit)).urls, limit).to.deep.equal(all);
      }
      expect((await result(`${crawls}/${id}?limit=250`)).cursor).to.equal(undefined);
    });

    it("returns only records of the requested status", async () => {
      const statuses = ["completed", "queued", "skipped", "queued"] as const;
      const records = statuses.map((status) => ({ status, bodies: [30] }));
      const id = add(gateway.accountId, {}, records);
      expect((await walk(id, "status=queued&limit=1")).urls).to.deep.equal([
        "https://example.com/1",
        "https://example.com/3",
      ]);
      expect(gateway.crawls.blobs.read).to.have.length(2);
      expect((await result(`${crawls}/${id}?status=errored`)).records).to.deep.equal([]);
    });

    it("ends a response before 10 MB with a cursor, and returns a larger record alone", async () => {
      const sizes = [6 * MB, 4 * MB - 1_000, 6 * MB, 5 * MB, 25 * MB, 100, 4 * MB];
      const id = add(
        gateway.accountId,
        {},
        sizes.map((size) => ({ bodies: [size] })),
      );
      const { urls, answers } = await walk(id, "");
      expect(urls).to.have.length(7);
      expect(answers.map(({ records }) => records)).to.deep.equal([2, 1, 1, 1, 2]);
      for (const { records, bytes } of answers) {
        if (records > 1) expect(bytes).to.be.at.most(CRAWL_ANSWER_BYTES_MAX);
      }
      expect(answers[3]?.bytes).to.be.above(25 * MB);
    });

    it("refuses an invalid query, with a pointer", async () => {
      const id = add(gateway.accountId);
      const faults: [string, string][] = [
        ["cursor=x", "/query/cursor"],
        ["cursor=", "/query/cursor"],
        [`cursor=${"c".repeat(129)}`, "/query/cursor"],
        ["limit=0", "/query/limit"],
        ["limit=100001", "/query/limit"],
        ["limit=many", "/query/limit"],
        ["status=running", "/query/status"],
      ];
      for (const [query, pointer] of faults) {
        const { status, json } = await gateway.ask(`${crawls}/${id}?${query}`);
        expect(status, query).to.equal(400);
        expect(json?.errors[0]).to.deep.include({ code: 1001, source: { pointer } });
      }
      expect((await gateway.ask(`${crawls}/${id}?limit=100000`)).status).to.equal(200);
    });

    it("refuses jobs of another account and unknown ones", async () => {
      const other = await openAccount(gateway.actors, "Two");
      for (const id of [
        add(other),
        UNKNOWN,
        "7a5d1c1e-5d1c-4f7e-8d43-0a7a5d1c1e5d",
        "x".repeat(600),
      ]) {
        for (const [path, method] of [
          [`${crawls}/${id}`, "GET"],
          [`${crawls}/${id}`, "DELETE"],
          [`${crawls}/${id}/events`, "GET"],
        ] as const) {
          const { status, json } = await gateway.ask(path, { method });
          expect(status, path).to.equal(404);
          expect(json?.errors[0]?.code).to.equal(1004);
        }
      }
    });

    it("aborts the response when a body cannot be read to its end", async () => {
      const id = add(gateway.accountId, {}, [{ bodies: [100] }, { bodies: [2 * MB] }]);
      gateway.crawls.blobs.broken = `crawl.${id}.1.0`;
      const failure = await gateway.ask(`${crawls}/${id}`).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(TypeError);
      const logged = gateway.logs.filter(({ msg }) => msg === "request failed");
      expect(logged).to.have.length(1);
      expect(JSON.stringify(logged)).to.contain("the disk is gone");
    });

    it("aborts the response when a body is missing", async () => {
      const id = add(gateway.accountId, {}, [{ bodies: [100] }]);
      gateway.crawls.blobs.blobs.clear();
      const failure = await gateway.ask(`${crawls}/${id}`).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(TypeError);
    });

    it("reads no faster than its client, and stops when the client disconnects", async () => {
      const id = add(gateway.accountId, {}, [{ bodies: [100 * MB] }]);
      const { blobs } = gateway.crawls;
      const client = request(`${gateway.url}${crawls}/${id}`, {
        headers: { Authorization: `Bearer ${gateway.token}` },
      });
      client.end();
      const [response] = await once(client, "response");
      const [beginning] = await once(response, "data");
      response.pause();
      expect(String(beginning)).to.match(/^{"success":true/);
      const stalled = async () => {
        const before = blobs.bytesTaken;
        await new Promise((resolve) => setTimeout(resolve, 100));
        return blobs.bytesTaken === before;
      };
      await until("the reading stalls", stalled);
      // Bytes that the two sockets and Node's buffers hold.
      expect(blobs.bytesTaken).to.be.below(20 * MB);
      response.destroy();
      await until("the request is over", () =>
        gateway.logs.some(({ code }) => code === "cancelled"),
      );
      expect(blobs.bytesTaken).to.be.below(22 * MB);
    });

    it("ends a response at its timeout, and releases data that the client does not read", async () => {
      await reopen({ readMs: 5_000 });
      const small = add(gateway.accountId, {}, [{ bodies: [100] }]);
      expect((await result(`${crawls}/${small}`)).records).to.have.length(1);
      const large = add(gateway.accountId, {}, [{ bodies: [100 * MB] }]);
      const client = request(`${gateway.url}${crawls}/${large}`, {
        headers: { Authorization: `Bearer ${gateway.token}` },
      });
      client.end();
      const [response] = await once(client, "response");
      const failure = once(response, "error");
      response.pause();
      await until("the request is over", () =>
        gateway.logs.some(({ msg }) => msg === "request failed"),
      );
      response.resume();
      expect((await failure)[0]).to.have.property("code", "ECONNRESET");
      expect(gateway.crawls.blobs.bytesTaken).to.be.below(22 * MB);
      expect((await result(`${crawls}/${small}`)).records).to.have.length(1);
    });

    it("serves CRAWL_READS_OF_ACCOUNT_MAX concurrent reads of an account, and refuses one more until one ends", async () => {
      const id = add(gateway.accountId, {}, [{ bodies: [100] }]);
      const { blobs } = gateway.crawls;
      const get = blobs.get.bind(blobs);
      const { promise: opened, resolve: openAll } = Promise.withResolvers<void>();
      blobs.get = async function* (name, options) {
        await opened;
        yield* get(name, options);
      };
      const asked = Array.from({ length: CRAWL_READS_OF_ACCOUNT_MAX }, () =>
        gateway.ask(`${crawls}/${id}`),
      );
      await until(
        "all are read",
        () => gateway.crawls.listed.length === CRAWL_READS_OF_ACCOUNT_MAX,
      );
      const refused = await gateway.ask(`${crawls}/${id}`);
      expect(refused.status).to.equal(429);
      expect(refused.headers.get("retry-after")).to.equal("1");
      openAll();
      for (const { status } of await Promise.all(asked)) expect(status).to.equal(200);
      expect((await gateway.ask(`${crawls}/${id}`)).status).to.equal(200);
    });

    /** The URLs of all records, and what each answer came to. */
    async function walk(id: string, query: string) {
      const urls: string[] = [];
      const answers: { records: number; bytes: number }[] = [];
      let cursor = "";
      do {
        const { status, text, json } = await gateway.ask(`${crawls}/${id}?${query}${cursor}`);
        expect(status).to.equal(200);
        const { records, cursor: next } = json?.result ?? {};
        urls.push(...records.map(urlOf));
        answers.push({ records: records.length, bytes: Buffer.byteLength(text) });
        cursor = next === undefined ? "" : `&cursor=${next}`;
      } while (cursor !== "");
      return { urls, answers };
    }
  });

  describe("listCrawls()", () => {
    const ids = ["1", "2", "3"].map((digit) => digit.repeat(32));
    beforeEach(() => {
      const entries = ids.map((id, index) => ({
        id,
        url: `https://example.com/${index}`,
        status: index === 1 ? ("running" as const) : ("completed" as const),
        createdAt: START,
        ...(index === 1 ? {} : { endedAt: START + 1_000 }),
      }));
      gateway.crawls.lists.set(gateway.accountId, entries);
    });

    it("returns the account's jobs in pages", async () => {
      const first = await gateway.ask(`${crawls}?limit=2`);
      expect(first.status, first.text).to.equal(200);
      expect(first.json?.result).to.deep.equal([
        {
          id: ids[0],
          url: "https://example.com/0",
          status: "completed",
          createdAt: "2026-11-20T12:00:00.000Z",
          endedAt: "2026-11-20T12:00:01.000Z",
        },
        {
          id: ids[1],
          url: "https://example.com/1",
          status: "running",
          createdAt: "2026-11-20T12:00:00.000Z",
        },
      ]);
      const { count, cursor } = first.json?.result_info ?? {};
      expect(count).to.equal(2);
      const second = await gateway.ask(`${crawls}?limit=2&cursor=${cursor}`);
      expect(second.json?.result.map(({ id }: { id: string }) => id)).to.deep.equal([ids[2]]);
      expect(second.json?.result_info).to.deep.equal({ count: 1 });
    });

    it("returns the final counts of an ended job and the current counts of a running one", async () => {
      const running = add(gateway.accountId, { total: 9, finished: 4, skipped: 1 });
      const [ended] = ids;
      const entry = { url: "https://example.com/", createdAt: START };
      gateway.crawls.lists.set(gateway.accountId, [
        { ...entry, id: running, status: "running" },
        ...[{ ...entry, id: ended ?? "", status: "completed" as const }].map((one) => ({
          ...{ ...one, endedAt: START, total: 3, finished: 2, skipped: 5 },
        })),
      ]);
      const [first, second] = await result(crawls);
      expect(first).to.include({ id: running, total: 9, finished: 4, skipped: 1 });
      expect(second).to.include({ id: ended, total: 3, finished: 2, skipped: 5 });
    });

    it("returns only jobs of the requested status", async () => {
      const { json } = await gateway.ask(`${crawls}?status=running`);
      expect(json?.result.map(({ id }: { id: string }) => id)).to.deep.equal([ids[1]]);
    });

    it("refuses an invalid listing, with a pointer", async () => {
      for (const [query, pointer] of [
        ["cursor=x", "/query/cursor"],
        ["limit=0", "/query/limit"],
        ["limit=101", "/query/limit"],
        ["status=queued", "/query/status"],
      ]) {
        const { status, json } = await gateway.ask(`${crawls}?${query}`);
        expect(status, query).to.equal(400);
        expect(json?.errors[0]?.source, query).to.deep.equal({ pointer });
      }
      expect((await gateway.ask(`${crawls}?limit=100`)).status).to.equal(200);
    });
  });

  describe("cancelCrawl()", () => {
    it("cancels a running job, and refuses an ended one", async () => {
      const id = add(gateway.accountId);
      const first = await gateway.ask(`${crawls}/${id}`, { method: "DELETE" });
      expect(first.status).to.equal(200);
      expect(first.json?.result).to.deep.equal({ job_id: id, message: "Crawl cancelled" });
      const second = await gateway.ask(`${crawls}/${id}`, { method: "DELETE" });
      expect(second.status).to.equal(409);
      expect(second.json?.errors).to.deep.equal([
        { code: 1006, message: "Cannot cancel crawl: it is cancelled_by_user" },
      ]);
    });
  });

  it("HEAD of an event stream returns the head only", async () => {
    const path = `${crawls}/${add(gateway.accountId)}/events`;
    const { status, headers, text } = await gateway.ask(path, { method: "HEAD" });
    expect(status).to.equal(200);
    expect(headers.get("content-type")).to.match(/^text\/event-stream/);
    expect(text).to.equal("");
    await until("it is over", () => gateway.crawls.live.watchers === 0);
  });

  it("reading needs the read permission, the rest the write permission", async () => {
    const reading = await gateway.tokenWith("browser-rendering.read");
    const id = add(gateway.accountId, { status: "completed" });
    const statusOf = async (path: string, method: string) => {
      const json = method === "POST" ? { json: { url: "http://a" } } : {};
      return (await gateway.ask(path, { method, token: reading, ...json })).status;
    };
    expect(await statusOf(crawls, "GET")).to.equal(200);
    expect(await statusOf(`${crawls}/${id}`, "GET")).to.equal(200);
    expect(await statusOf(`${crawls}/${id}/events`, "GET")).to.equal(200);
    expect(await statusOf(crawls, "POST")).to.equal(403);
    expect(await statusOf(`${crawls}/${id}`, "DELETE")).to.equal(403);
    expect(await statusOf(crawls, "PATCH")).to.equal(405);
  });
});

const urlOf = ({ url }: { url: string }) => url;
