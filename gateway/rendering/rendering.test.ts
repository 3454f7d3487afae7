import { once } from "node:events";
import { request } from "node:http";
import { expect } from "chai";
import { ERRORS, type ErrorCode } from "../../schemas/errors.ts";
import { RENDER_BODY_BYTES_MAX } from "../../schemas/limits.ts";
import { browserTime } from "../../schemas/rendering/browser-time.ts";
import { PAGE_CALLS, type PageCall } from "../../schemas/rendering/http/page-calls.ts";
import { RENDER_CACHE_SECONDS, RENDER_CACHE_SECONDS_MAX } from "../../schemas/rendering/limits.ts";
import { openAccount, START, type TestGateway, testGateway } from "../testing/test-gateway.ts";
import { CHUNK } from "../testing/test-printer.ts";

describe("routes of rendering", () => {
  let gateway: TestGateway;
  let pdf: string;
  const start = async (options: Parameters<typeof testGateway>[0] = {}) => {
    gateway = await testGateway(options);
    pdf = `/v4/accounts/${gateway.accountId}/browser-rendering/pdf`;
  };
  beforeEach(() => start());
  afterEach(() => gateway.stop());

  const print = (html: string, path = pdf) => gateway.ask(path, { method: "POST", json: { html } });

  it("renderPdf() streams what the worker prints", async () => {
    const { status, headers, text } = await print("<h1>Hello</h1>");
    expect(status).to.equal(200);
    expect(text).to.match(/^%PDF-1\.7\n.*<h1>Hello/);
    expect(headers.get("content-type")).to.equal("application/pdf");
    expect(headers.get("content-length")).to.equal(String(text.length));
    expect(headers.get("x-browser-ms-used")).to.equal("34");
  });

  it("renderPdf() hands every parameter on, and accepts the query of the public API", async () => {
    const json = { html: "x", viewport: { width: 800, height: 600 }, pdfOptions: { scale: 2 } };
    const answer = await gateway.ask(`${pdf}?cacheTTL=5&browser=chromium`, {
      method: "POST",
      json,
    });
    const printed = JSON.parse(answer.text.slice(answer.text.indexOf("\n")));
    expect(printed.viewport).to.deep.equal(json.viewport);
    expect(printed.pdfOptions).to.deep.include(json.pdfOptions);
  });

  it("renderPdf() says what the page's site answered, and nothing where there is none", async () => {
    const shown = async (html: string) => (await print(html)).headers.get("x-target-status");
    expect(await shown("status 404")).to.equal("404");
    expect(await shown("x")).to.equal(null);
  });

  it("renderPdf() lets its answer be kept for cacheTTL, or RENDER_CACHE_SECONDS", async () => {
    const kept = async (query: string) => {
      await print("x", pdf + query);
      return gateway.printer.cacheTtlS;
    };
    expect(await kept("")).to.equal(RENDER_CACHE_SECONDS);
    expect(await kept("?cacheTTL=0")).to.equal(0);
    expect(await kept(`?cacheTTL=${RENDER_CACHE_SECONDS_MAX}`)).to.equal(RENDER_CACHE_SECONDS_MAX);
  });

  it("renderPdf() answers under its younger path too", async () => {
    const path = pdf.replace("browser-rendering", "browser-run");
    expect((await print("x", path)).status).to.equal(200);
    const usage = path.replace("pdf", "usage");
    expect((await gateway.ask(usage)).status).to.equal(200);
  });

  it("renderPdf() tells what only the browser can find wrong as every other fault", async () => {
    for (const pointer of ["/waitForSelector/selector", ""]) {
      const json = { html: `blame ${pointer}` };
      const answer = await gateway.ask(pdf, { method: "POST", json });
      expect(answer.status).to.equal(400);
      const message = `Cannot accept ${pointer || "body"}: Expected something else`;
      expect(answer.json?.errors).to.deep.equal([{ code: 1001, message, source: { pointer } }]);
    }
  });

  it("renderPdf() refuses each fault with its pointer, and X-Browser-Ms-Used", async () => {
    const faults: [unknown, string, RegExp][] = [
      [{}, "/url", /exactly one of url, html and files/],
      [{ html: "x", url: "http://example.com" }, "/url", /exactly one/],
      [{ html: "x", pdfoptions: {} }, "/pdfoptions", /Unknown field.*pdfOptions/],
      [{ html: "x", pdfOptions: { scale: 2.01 } }, "/pdfOptions/scale", /a number from 0\.1 to 2$/],
      [{ html: "x", pdfOptions: { size: 1 } }, "/pdfOptions/size", /Unknown field.*pageRanges/],
      [{ html: "x", viewport: { width: "8" } }, "/viewport/width", /number/],
    ];
    for (const [json, pointer, message] of faults) {
      const answer = await gateway.ask(pdf, { method: "POST", json });
      expect(answer.status, pointer).to.equal(400);
      const fault = answer.json?.errors.find(({ source }) => source?.pointer === pointer);
      expect(fault?.message, JSON.stringify(answer.json?.errors)).to.match(message);
      expect(answer.headers.get("x-browser-ms-used")).to.equal("0");
    }
    for (const query of ["cacheTTL=86401", "browser=other"]) {
      const answer = await gateway.ask(`${pdf}?${query}`, { method: "POST", json: { html: "x" } });
      expect(answer.status, query).to.equal(400);
    }
    expect(gateway.printer.tasks).to.equal(0);
  });

  it("renderPdf() passes on every refusal of a worker, with the browser time it cost", async () => {
    const codes = Object.entries(ERRORS).filter(([, { status }]) => status === 422);
    expect(codes).not.to.deep.equal([]);
    for (const [name, { code }] of codes) {
      const { status, headers, json } = await print(`refuse ${name}`);
      expect(status).to.equal(422);
      expect(json?.errors).to.deep.equal([{ code, message: `Cannot print: ${name}` }]);
      expect(headers.get("x-browser-ms-used")).to.equal("12");
    }
  });

  it("renderPdf() answers refusals of the platform with their status, and when to come back", async () => {
    const refusals: [ErrorCode, number, boolean][] = [
      ["busy", 503, true],
      ["unavailable", 503, true],
      ["queue_full", 429, true],
      ["deadline_exceeded", 504, false],
    ];
    for (const [name, status, retry] of refusals) {
      const answer = await print(`refuse ${name}`);
      expect(answer.status).to.equal(status);
      expect(answer.headers.get("retry-after")).to.equal(retry ? "1" : null);
    }
  });

  it("renderPdf() says 500 and no more when a worker fails at every try", async () => {
    const { status, json } = await print("fault");
    expect(status).to.equal(500);
    expect(json?.errors[0]?.message).to.equal(
      "Cannot answer: internal error; its log line has the id of this request",
    );
    expect(gateway.printer.tasks).to.equal(3);
  });

  it("renderPdf() needs browser-rendering.write", async () => {
    const token = await gateway.tokenWith("browser-rendering.read", "account.write");
    const refused = await gateway.ask(pdf, { method: "POST", token, json: { html: "x" } });
    expect(refused.status).to.equal(403);
    expect(refused.json?.errors[0]?.message).to.contain("Browser Rendering Write");
    expect(refused.headers.get("x-browser-ms-used")).to.equal("0");
  });

  it("renderPdf() says 0 ms to strangers and for other accounts", async () => {
    const other = await openAccount(gateway.actors, "Two");
    const path = pdf.replace(gateway.accountId, other);
    const unknown = await print("x", path);
    expect(unknown.status).to.equal(404);
    expect(unknown.headers.get("x-browser-ms-used")).to.equal("0");
    const stranger = await gateway.ask(pdf, { method: "POST", token: null, json: { html: "x" } });
    expect(stranger.status).to.equal(401);
    expect(stranger.headers.get("x-browser-ms-used")).to.equal("0");
  });

  it("renderPdf() refuses past the day's browser time until midnight, and usage shows it", async () => {
    const use = (ms: number, taskId: string) =>
      gateway.actors.send(browserTime, gateway.accountId, "used", { ms, taskId });
    const usage = `/v4/accounts/${gateway.accountId}/browser-rendering/usage`;
    await use(599_999, "a");
    await gateway.actors.settled();
    expect((await print("x")).status).to.equal(200);
    await use(1, "b");
    await gateway.actors.settled();
    const refused = await print("x");
    expect(refused.status).to.equal(429);
    expect(refused.json?.errors[0]?.code).to.equal(2002);
    expect(refused.headers.get("retry-after")).to.equal(String(12 * 3_600));
    expect((await gateway.ask(usage)).json?.result).to.deep.equal({
      date: "2026-11-20",
      browser_ms_used: 600_000,
      browser_ms_limit: 600_000,
      resets_at: "2026-11-21T00:00:00.000Z",
      days: [{ date: "2026-11-20", browser_ms_used: 600_000, tasks: 2 }],
    });
    gateway.clock.now = START + 12 * 3_600_000;
    expect((await print("x")).status).to.equal(200);
  });

  describe("screenshot", () => {
    const PNG = { html: "<h1>Hello</h1>" };
    const take = (json: object, options: object = {}) =>
      gateway.ask(pdf.replace("/pdf", "/screenshot"), { method: "POST", json, ...options });

    it("takeScreenshot() streams what the worker captures, as the type that was asked for", async () => {
      const types: [object, string][] = [
        [{}, "image/png"],
        [{ screenshotOptions: { type: "jpeg", quality: 100 } }, "image/jpeg"],
        [{ screenshotOptions: { type: "webp", quality: 0 } }, "image/webp"],
        [{ screenshotOptions: { encoding: "base64" } }, "text/plain; charset=utf-8"],
      ];
      for (const [json, type] of types) {
        const { status, headers, text } = await take({ ...PNG, ...json });
        expect(status, text).to.equal(200);
        expect(headers.get("content-type")).to.equal(type);
        expect(headers.get("content-length")).to.equal(String(text.length));
        expect(headers.get("x-browser-ms-used")).to.equal("34");
      }
      const young = pdf.replace("browser-rendering/pdf", "browser-run/screenshot");
      expect((await gateway.ask(young, { method: "POST", json: PNG })).status).to.equal(200);
    });

    it("takeScreenshot() hands every parameter on", async () => {
      const json = {
        ...PNG,
        selector: "h1",
        viewport: { width: 800, height: 600 },
        screenshotOptions: { clip: { x: 1, y: 2, width: 3, height: 4 }, omitBackground: true },
      };
      const { text } = await take(json);
      const taken = JSON.parse(text.slice(text.indexOf("\n")));
      expect(taken.selector).to.equal("h1");
      expect(taken.viewport).to.deep.equal(json.viewport);
      expect(taken.screenshotOptions).to.deep.include(json.screenshotOptions);
    });

    it("takeScreenshot() refuses each fault with its pointer, and asks no worker", async () => {
      const options = (screenshotOptions: object) => ({ ...PNG, screenshotOptions });
      const faults: [object, string, RegExp][] = [
        [{}, "/url", /exactly one of url, html and files/],
        [options({ quality: 80 }), "/screenshotOptions/quality", /no quality with type png/],
        [options({ type: "gif" }), "/screenshotOptions/type", /png.*jpeg.*webp/],
        [options({ fullpage: true }), "/screenshotOptions/fullpage", /Unknown field.*fullPage/],
        [{ ...PNG, pdfOptions: {} }, "/pdfOptions", /Unknown field/],
        [{ ...PNG, selector: "" }, "/selector", /1 to 4096 characters/],
      ];
      for (const [json, pointer, message] of faults) {
        const answer = await take(json);
        expect(answer.status, pointer).to.equal(400);
        const fault = answer.json?.errors.find(({ source }) => source?.pointer === pointer);
        expect(fault?.message, JSON.stringify(answer.json?.errors)).to.match(message);
        expect(answer.headers.get("x-browser-ms-used")).to.equal("0");
      }
      expect(gateway.printer.tasks).to.equal(0);
    });

    it("takeScreenshot() passes on a worker's refusal, with the browser time it cost", async () => {
      const { status, headers, json } = await take({ html: "refuse element_not_found" });
      expect([status, json?.errors[0]?.code]).to.deep.equal([422, 6_004]);
      expect(headers.get("x-browser-ms-used")).to.equal("12");
    });

    it("takeScreenshot() needs browser-rendering.write, and browser time", async () => {
      const token = await gateway.tokenWith("browser-rendering.read", "account.write");
      expect((await take(PNG, { token })).status).to.equal(403);
      const used = { ms: 600_000, taskId: "a" };
      await gateway.actors.send(browserTime, gateway.accountId, "used", used);
      await gateway.actors.settled();
      const refused = await take(PNG);
      expect([refused.status, refused.json?.errors[0]?.code]).to.deep.equal([429, 2_002]);
    });

    it("takeScreenshot() waits in the queue of PDFs, and refuses at once when it is full", async () => {
      await gateway.stop();
      await start({ slots: 1, waitingMax: 1 });
      const leaving = new AbortController();
      const hang = { method: "POST", json: { html: "hang" }, signal: leaving.signal };
      const ask = () => gateway.ask(pdf, hang);
      const shot = take({ html: "hang" }, { signal: leaving.signal });
      const asked = [ask(), ask(), shot].map((answer) => answer.catch(() => undefined));
      // Whichever of the three came last was refused; the other two are held.
      const refused = await Promise.race(asked);
      expect(refused?.status).to.equal(429);
      expect(refused?.json?.errors[0]?.code).to.equal(2003);
      leaving.abort();
      await Promise.all(asked);
    });

    it("takeScreenshot() takes the task back when the client hangs up", async () => {
      const leaving = new AbortController();
      const asked = take({ html: "hang" }, { signal: leaving.signal }).catch(() => undefined);
      await begun();
      leaving.abort();
      await asked;
      await gateway.printer.cancelled;
    });
  });

  describe("calls that answer JSON", () => {
    const NEEDED: Record<string, object> = {
      scrape: { elements: [{ selector: "h1" }] },
      json: { prompt: "x" },
    };
    const read = (name: string, json: object, path = pdf) =>
      gateway.ask(path.replace(/pdf$/, name), {
        method: "POST",
        json: { ...NEEDED[name], ...json },
      });

    for (const [name, { hasMeta }] of Object.entries<PageCall>(PAGE_CALLS)) {
      it(`${name} answers in the envelope, under both paths, with browser time and length`, async () => {
        const path = pdf.replace("browser-rendering", "browser-run");
        for (const { status, headers, json, text } of [
          await read(name, { html: "x" }),
          await read(`${name}`, { html: "x" }, path),
        ]) {
          expect(status, text).to.equal(200);
          expect(json).to.deep.include({ success: true, errors: [], messages: [] });
          expect(json).to.have.property("result");
          expect("meta" in (json ?? {})).to.equal(hasMeta === true);
          expect(headers.get("x-browser-ms-used")).to.equal("34");
          expect(headers.get("content-length")).to.equal(String(text.length));
        }
        expect(gateway.printer.cacheTtlS).to.equal(RENDER_CACHE_SECONDS);
        expect((await read(`${name}?cacheTTL=0`, { ...NEEDED[name], html: "x" })).status).to.equal(
          200,
        );
        expect(gateway.printer.cacheTtlS).to.equal(0);
        const shown = await read(name, { html: "status 404" });
        expect(shown.headers.get("x-target-status")).to.equal("404");
      });

      it(`${name} needs browser-rendering.write and browser time, and passes refusals on`, async () => {
        const refused = await read(name, { html: "refuse page_not_printable" });
        expect([refused.status, refused.json?.errors[0]?.code]).to.deep.equal([422, 6_003]);
        expect(refused.headers.get("x-browser-ms-used")).to.equal("12");
        const faulty = await read(name, { html: "x", viewport: { width: "8", height: 8 } });
        expect(faulty.json?.errors[0]?.source?.pointer).to.equal("/viewport/width");
        const token = await gateway.tokenWith("browser-rendering.read");
        const asked = { method: "POST", json: { html: "x" }, token };
        expect((await gateway.ask(pdf.replace(/pdf$/, name), asked)).status).to.equal(403);
        const used = { ms: 600_000, taskId: "a" };
        await gateway.actors.send(browserTime, gateway.accountId, "used", used);
        await gateway.actors.settled();
        expect((await read(name, { html: "x" })).json?.errors[0]?.code).to.equal(2_002);
      });
    }
  });

  it("getUsage() opens to readers of rendering and of the account, and shows no limit as null", async () => {
    await gateway.stop();
    await start({ config: { browserSecondsPerDay: 0 } });
    const usage = `/v4/accounts/${gateway.accountId}/browser-rendering/usage`;
    for (const permission of [
      "browser-rendering.read",
      "account.read",
      "browser-rendering.write",
    ] as const) {
      const token = await gateway.tokenWith(permission);
      const { status, json } = await gateway.ask(usage, { token });
      expect(status).to.equal(200);
      expect(json?.result.browser_ms_limit).to.equal(null);
    }
    const token = await gateway.tokenWith("apps.read");
    const refused = await gateway.ask(usage, { token });
    expect(refused.status).to.equal(403);
    expect(refused.json?.errors[0]?.message).to.match(/Browser Rendering Read" or "Account/);
  });

  it("renderPdf() refuses at once when the queue is full", async () => {
    await gateway.stop();
    await start({ slots: 1, waitingMax: 1 });
    const leaving = new AbortController();
    const ask = () =>
      gateway
        .ask(pdf, { method: "POST", json: { html: "hang" }, signal: leaving.signal })
        .catch(() => undefined);
    const asked = [ask(), ask(), ask()];
    // Whichever of the three came last was refused; the other two are held.
    const refused = await Promise.race(asked);
    expect(refused?.status).to.equal(429);
    expect(refused?.json?.errors[0]?.code).to.equal(2003);
    expect(refused?.headers.get("retry-after")).to.equal("1");
    leaving.abort();
    await Promise.all(asked);
  });

  it("renderPdf() takes the task back when the client hangs up before there is anything", async () => {
    const leaving = new AbortController();
    const asked = gateway
      .ask(pdf, { method: "POST", json: { html: "hang" }, signal: leaving.signal })
      .catch((error: unknown) => error);
    await begun();
    leaving.abort();
    await asked;
    await gateway.printer.cancelled;
    expect(gateway.logs.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
  });

  it("renderPdf() prints no faster than the client reads, and stops when it hangs up", async () => {
    const client = request(gateway.url + pdf, {
      method: "POST",
      headers: { Authorization: `Bearer ${gateway.token}`, "Content-Type": "application/json" },
    });
    client.end(JSON.stringify({ html: "chunks 10000" }));
    const [response] = await once(client, "response");
    await once(response, "readable");
    response.read(1);
    // The buffers of the kernel hold only a few megabytes, but 10,000 chunks are 650 MB. So the worker must have been
    // stopped early.
    expect(gateway.printer.taken).to.be.below(2_000);
    response.destroy();
    await gateway.printer.cancelled;
    expect(gateway.printer.taken).to.be.below(2_000);
  });

  it("renderPdf() streams many chunks whole, with their length where it is known", async () => {
    const known = await print("chunks 100");
    expect(known.text.length).to.equal(100 * CHUNK.length);
    expect(known.headers.get("content-length")).to.equal(String(100 * CHUNK.length));
    const unknown = await print("stream 100");
    expect(unknown.text).to.equal(known.text);
    expect(unknown.headers.has("content-length")).to.equal(false);
  });

  it("renderPdf() answers a refusal when the first chunk fails, and cuts the answer off later", async () => {
    const early = await print("break 0");
    expect(early.status).to.equal(500);
    expect(early.headers.get("content-type")).to.contain("application/json");
    expect(early.json?.errors).to.deep.equal([
      {
        code: 2000,
        message: "Cannot answer: internal error; its log line has the id of this request",
      },
    ]);
    const late = await print("break 3").catch((error: unknown) => error);
    expect(late).to.be.instanceOf(Error);
    const logged = gateway.logs.filter(({ msg }) => msg === "request failed");
    expect(logged).to.have.length(2);
    expect(JSON.stringify(logged[0])).to.contain("caught fire");
  });

  it("renderPdf() reads a body of the limit and refuses one byte more", async function () {
    this.timeout(120_000);
    const sized = (bytes: number) => `{"html":"x"${" ".repeat(bytes - 12)}}`;
    const headers = { "Content-Type": "application/json" };
    const ask = (body: string) => gateway.ask(pdf, { method: "POST", body, headers });
    expect((await ask(sized(RENDER_BODY_BYTES_MAX))).status).to.equal(200);
    const refused = await ask(sized(RENDER_BODY_BYTES_MAX + 1));
    expect(refused.status).to.equal(413);
    expect(refused.headers.get("x-browser-ms-used")).to.equal("0");
  });

  async function begun(): Promise<void> {
    while (gateway.printer.tasks === 0) await new Promise((resolve) => setImmediate(resolve));
  }
});
