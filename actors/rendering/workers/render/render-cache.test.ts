import { expect } from "chai";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { RENDER_CACHE_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import { render } from "../../../../schemas/rendering/render.ts";
import { startWorld, type World } from "../../../../scripts/testing/actor-world.ts";
import { openPool, renderParts } from "../../../../scripts/testing/printer.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { TtlStore } from "../../../runtime/store/ttl-store.ts";
import { browserTimeActor } from "../../browser-time/browser-time.ts";
import { renderWorker } from "./render.ts";
import { KeptAnswer, RenderCache } from "./render-cache.ts";

const task = { account: "a", parameters: { html: "x" }, cacheTtlS: 5 };

describe("RenderCache", function () {
  this.timeout(60_000);
  let world: World;
  let now: number;
  let cache: RenderCache;
  beforeEach(async () => {
    world = await startWorld({ definitions: [browserTimeActor], tasks: [render] });
    now = systemClock.now();
    const store = new TtlStore(world.bus, "render", KeptAnswer);
    cache = new RenderCache({ store, clock: { now: () => now } });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  async function* pieces(...texts: (string | Uint8Array)[]) {
    for (const text of texts) yield Buffer.from(text);
  }
  const keep = async (given: typeof task, chunks = pieces("one", "two"), status?: number) => {
    const taken: Uint8Array[] = [];
    const about = () => ({ pages: 2, status });
    for await (const chunk of cache.place("pdf", given).keep(chunks, about)) taken.push(chunk);
    return Buffer.concat(taken).length;
  };
  const kept = async (given: typeof task, message = "pdf") =>
    (await cache.place(message, given).find())?.bytes.toString();
  const untilKept = (given: typeof task) =>
    until("it is kept", async () => (await kept(given)) !== undefined);

  it("find() has what keep() passed on, for the same task alone, and for its time", async () => {
    expect(await keep(task, undefined, 200)).to.equal(6);
    await untilKept(task);
    expect(await cache.place("pdf", task).find()).to.deep.include({ pages: 2, status: 200 });
    expect(await kept(task)).to.equal("onetwo");
    for (const other of [{ account: "b" }, { parameters: { html: "y" } }, { cacheTtlS: 0 }]) {
      expect(await kept({ ...task, ...other }), JSON.stringify(other)).to.equal(undefined);
    }
    expect(await kept(task, "screenshot")).to.equal(undefined);
    now += 4_999;
    expect(await kept(task)).to.equal("onetwo");
    now += 1;
    expect(await kept(task)).to.equal(undefined);
  });

  it("keep() keeps RENDER_CACHE_BYTES_MAX and not one byte more, no error, and nothing half taken", async () => {
    const sized = (bytes: number, html: string) => {
      const given = { ...task, parameters: { html } };
      return { given, chunks: pieces(Buffer.alloc(bytes - 1, "x"), "y") };
    };
    const largest = sized(RENDER_CACHE_BYTES_MAX, "largest");
    await keep(largest.given, largest.chunks);
    await untilKept(largest.given);
    const larger = sized(RENDER_CACHE_BYTES_MAX + 1, "larger");
    expect(await keep(larger.given, larger.chunks)).to.equal(RENDER_CACHE_BYTES_MAX + 1);
    const failed = { ...task, parameters: { html: "failed" } };
    await keep(failed, undefined, 503);
    const left = { ...task, parameters: { html: "left" } };
    for await (const _ of cache.place("pdf", left).keep(pieces("one", "two"), () => ({}))) break;
    // Kept after all of them.
    await keep(task);
    await untilKept(task);
    for (const { parameters } of [larger.given, failed, left]) {
      expect(await kept({ ...task, parameters }), parameters.html).to.equal(undefined);
    }
  });

  it("reads a request once for its key, and not at all without a cache time", async () => {
    let reads = 0;
    const parameters = { html: "x", toJSON: () => ++reads };
    for (const [cacheTtlS, expected] of [
      [0, 0],
      [5, 1],
    ] as const) {
      const place = cache.place("pdf", { ...task, parameters, cacheTtlS });
      expect(await place.find()).to.equal(undefined);
      for await (const _ of place.keep(pieces("one"), () => ({}))) reads += 0;
      expect(reads).to.equal(expected);
    }
  });

  it("the same request is rendered once, and costs browser time once", async () => {
    await using site = await WebSite.start();
    await using pool = openPool();
    await world.host();
    const limits = { interactive: 1, batch: 1, browserMsPerDay: 0 };
    await world.worker([renderWorker({ ...renderParts(pool), cache }, limits)]);
    const parameters = PdfRequest.parse({ url: site.page("/", "<title>t</title>") });
    const run = async (cacheTtlS: number) => {
      const input = { account: "a", parameters, cacheTtlS };
      const options = { deadlineMs: 50_000, signal: new AbortController().signal };
      const { reply, chunks } = await world.client.run(render, "a", "pdf", input, options);
      const bytes = Buffer.concat(await Array.fromAsync(chunks));
      return { ...reply, pdf: bytes };
    };
    const first = await run(60);
    expect(first.browserMs).to.be.above(0);
    await untilKept({ account: "a", parameters, cacheTtlS: 60 } as never);
    const second = await run(60);
    expect(second).to.deep.include({ browserMs: 0, pages: 1, status: 200 });
    expect(second.pdf.equals(first.pdf)).to.equal(true);
    const pages = () => site.paths.filter((path) => path === "/").length;
    expect(pages()).to.equal(1);
    expect((await run(0)).browserMs).to.be.above(0);
    expect(pages()).to.equal(2);
  });
});
