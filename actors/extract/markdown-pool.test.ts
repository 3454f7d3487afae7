import { expect } from "chai";
import { MARKDOWN_QUEUE_MAX } from "../../schemas/crawl-limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { MarkdownPool, type MarkdownPoolOptions } from "./markdown-pool.ts";

const baseUrl = "https://a.example/";
/** Takes seconds, in whatever thread. */
const LONG = { html: "<p>word <b>x</b> <a href=y>z</a></p>".repeat(300_000), baseUrl };

describe("MarkdownPool", () => {
  let pool: MarkdownPool;
  const open = (options?: MarkdownPoolOptions) => {
    pool = new MarkdownPool(options);
    return pool;
  };
  afterEach(() => pool.close());

  it("convert() makes Markdown on a thread that is used again", async () => {
    open();
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        pool.convert({ html: `<h1>${index}</h1><a href=b>c</a>`, baseUrl, title: "T" }),
      ),
    );
    expect(made.map((outcome) => outcome.kind === "made" && outcome.markdown)).to.deep.equal(
      made.map((_, index) => `---\ntitle: "T"\n---\n\n# ${index}\n\n[c](https://a.example/b)\n`),
    );
  }).timeout(10_000);

  it("convert() ends a page that takes too long, and goes on with the next", async () => {
    open({ timeoutMs: 1_500 });
    const [long, next] = await Promise.all([
      pool.convert(LONG),
      pool.convert({ html: "a", baseUrl }),
    ]);
    expect(long).to.deep.equal({
      kind: "failed",
      reason: "Cannot make Markdown: it took longer than 1500 ms",
    });
    expect(next).to.deep.equal({ kind: "made", markdown: "a\n" });
  }).timeout(10_000);

  it("convert() goes on after a page that filled its thread's memory", async () => {
    open({ heapMibMax: 24 });
    const full = await pool.convert(LONG);
    expect(full).to.have.property("kind", "failed");
    expect(full).to.have.property("reason").that.includes("memory");
    expect(await pool.convert({ html: "a", baseUrl })).to.deep.equal({
      kind: "made",
      markdown: "a\n",
    });
  }).timeout(10_000);

  it("convert() lets MARKDOWN_QUEUE_MAX pages wait, and refuses one more", async () => {
    open();
    const leave = new AbortController();
    const running = pool.convert(LONG, leave.signal).catch((error: unknown) => error);
    const waiting = Array.from({ length: MARKDOWN_QUEUE_MAX }, () =>
      pool.convert({ html: "a", baseUrl }),
    );
    const refused = await pool.convert({ html: "a", baseUrl }).catch((error: unknown) => error);
    expect(refused).to.be.an.instanceOf(ActorError).with.property("code", "busy");
    leave.abort();
    await running;
    for (const outcome of await Promise.all(waiting)) expect(outcome.kind).to.equal("made");
  }).timeout(10_000);

  it("convert() ends with its caller's signal: before, while it waits, while it runs", async () => {
    open();
    const gone = new Error("gone");
    const before = await pool
      .convert(LONG, AbortSignal.abort(gone))
      .catch((error: unknown) => error);
    const controller = new AbortController();
    const both = [pool.convert(LONG, controller.signal), pool.convert(LONG, controller.signal)];
    const ended = Promise.allSettled(both);
    setImmediate(() => controller.abort(gone));
    const reasons = (await ended).map((one) =>
      one.status === "rejected" ? one.reason : one.value,
    );
    expect([before, ...reasons]).to.deep.equal([gone, gone, gone]);
    expect((await pool.convert({ html: "a", baseUrl })).kind).to.equal("made");
  }).timeout(10_000);

  it("close() refuses pages that wait and pages to come", async () => {
    open();
    const running = pool.convert(LONG);
    const waiting = pool.convert(LONG).catch((error: unknown) => error);
    await pool.close();
    expect((await running).kind).to.equal("failed");
    expect(await waiting).to.have.property("code", "busy");
    const late = await pool.convert({ html: "a", baseUrl }).catch((error: unknown) => error);
    expect(late).to.have.property("code", "busy");
  }).timeout(10_000);
});
