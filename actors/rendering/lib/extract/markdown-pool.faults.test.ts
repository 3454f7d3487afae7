import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { MARKDOWN_QUEUE_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { MARKDOWN_HTML_CHARS_MAX } from "./markdown.ts";
import { MARKDOWN_TIMEOUT_MS, MarkdownPool, type MarkdownPoolOptions } from "./markdown-pool.ts";
import type { MarkdownOutcome } from "./markdown-thread.ts";

const baseUrl = "https://a.example/";
const caller = { account: "a", signal: new AbortController().signal };
/** Time that two consecutive lines of a test may take. */
const SOON_MS = 5_000;
/** Time for the largest pages on a busy machine. */
const LARGE_MS_MAX = 150_000;
/** A page whose conversion takes seconds on any thread. */
const LONG = { html: "<p>word <b>x</b> <a href=y>z</a></p>".repeat(300_000), baseUrl };

describe("MarkdownPool", () => {
  let pool: MarkdownPool;
  const open = (options?: MarkdownPoolOptions) => {
    pool = new MarkdownPool(options);
    return pool;
  };
  afterEach(() => pool.close());

  it("convert() reuses its thread", async () => {
    open();
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        pool.convert({ html: `<h1>${index}</h1><a href=b>c</a>`, baseUrl, title: "T" }, caller),
      ),
    );
    expect(made.map((outcome) => outcome.kind === "made" && outcome.markdown)).to.deep.equal(
      made.map((_, index) => `---\ntitle: "T"\n---\n\n# ${index}\n\n[c](https://a.example/b)\n`),
    );
  });

  it("convert() stops a page that takes too long, and continues with the next", async () => {
    const clock = new SkippingClock();
    const timeoutMs = 60_000;
    open({ clock, timeoutMs });
    const both = Promise.all([
      pool.convert(LONG, caller),
      pool.convert({ html: "a", baseUrl }, caller),
    ]);
    await until("it is at it", () => clock.isAwaited(timeoutMs));
    clock.skip(timeoutMs);
    const [long, next] = await both;
    expect(long).to.deep.equal({
      kind: "failed",
      reason: "Cannot make Markdown: it took longer than 60000 ms",
    });
    expect(next).to.deep.equal({ kind: "made", markdown: "a\n" });
  });

  it("convert() stops a page after MARKDOWN_TIMEOUT_MS", async () => {
    const clock = new SkippingClock();
    open({ clock });
    let made: MarkdownOutcome | undefined;
    const long = pool.convert(LONG, caller).then((outcome) => {
      made = outcome;
    });
    await until("it is at it", () => clock.isAwaited(MARKDOWN_TIMEOUT_MS));
    clock.skip(MARKDOWN_TIMEOUT_MS - SOON_MS);
    await turn();
    expect(made).to.equal(undefined);
    clock.skip(SOON_MS);
    await long;
    const reason = `Cannot make Markdown: it took longer than ${MARKDOWN_TIMEOUT_MS} ms`;
    expect(made).to.deep.equal({ kind: "failed", reason });
  });

  it("convert() has enough memory for the largest pages, however dense they are", async () => {
    open({ timeoutMs: LARGE_MS_MAX });
    const piece = "<p><a href=y>z</a>";
    const html = piece.repeat(MARKDOWN_HTML_CHARS_MAX / piece.length);
    expect(await pool.convert({ html, baseUrl }, caller)).to.have.property("kind", "made");
  }).timeout(LARGE_MS_MAX);

  it("convert() continues after a page that exhausted its thread's memory", async () => {
    open({ heapMibMax: 24, timeoutMs: LARGE_MS_MAX });
    const full = await pool.convert(LONG, caller);
    expect(full).to.have.property("kind", "failed");
    expect(full).to.have.property("reason").that.includes("memory");
    expect(await pool.convert({ html: "a", baseUrl }, caller)).to.deep.equal({
      kind: "made",
      markdown: "a\n",
    });
  }).timeout(LARGE_MS_MAX);

  it("convert() serves accounts in turn", async () => {
    open();
    const leave = new AbortController();
    const running = pool.convert(LONG, { ...caller, signal: leave.signal }).catch(() => {});
    const order: string[] = [];
    const accounts = ["a", "a", "a", "b"];
    const waiting = accounts.map(async (account) => {
      await pool.convert({ html: "a", baseUrl }, { ...caller, account });
      order.push(account);
    });
    leave.abort();
    await Promise.all([running, ...waiting]);
    expect(order.join(" ")).to.equal("b a a a");
  });

  it("convert() lets MARKDOWN_QUEUE_MAX pages wait, and refuses one more", async () => {
    open();
    const leave = new AbortController();
    const running = pool
      .convert(LONG, { ...caller, signal: leave.signal })
      .catch((error: unknown) => error);
    const waiting = Array.from({ length: MARKDOWN_QUEUE_MAX }, () =>
      pool.convert({ html: "a", baseUrl }, caller),
    );
    const refused = await pool
      .convert({ html: "a", baseUrl }, caller)
      .catch((error: unknown) => error);
    expect(refused).to.be.an.instanceOf(ActorError).with.property("code", "busy");
    leave.abort();
    await running;
    for (const outcome of await Promise.all(waiting)) expect(outcome.kind).to.equal("made");
  }).timeout(60_000);

  it("convert() ends when its caller's signal aborts: before it starts, while it waits, while it runs", async () => {
    open();
    const gone = new Error("gone");
    const before = await pool
      .convert(LONG, { ...caller, signal: AbortSignal.abort(gone) })
      .catch((error: unknown) => error);
    const controller = new AbortController();
    const leaving = { ...caller, signal: controller.signal };
    const both = [pool.convert(LONG, leaving), pool.convert(LONG, leaving)];
    const ended = Promise.allSettled(both);
    setImmediate(() => controller.abort(gone));
    const reasons = (await ended).map((one) =>
      one.status === "rejected" ? one.reason : one.value,
    );
    expect([before, ...reasons]).to.deep.equal([gone, gone, gone]);
    expect((await pool.convert({ html: "a", baseUrl }, caller)).kind).to.equal("made");
  });

  it("close() refuses waiting and later pages", async () => {
    open();
    const running = pool.convert(LONG, caller);
    const waiting = pool.convert(LONG, caller).catch((error: unknown) => error);
    await pool.close();
    expect((await running).kind).to.equal("failed");
    expect(await waiting).to.have.property("code", "busy");
    const late = await pool
      .convert({ html: "a", baseUrl }, caller)
      .catch((error: unknown) => error);
    expect(late).to.have.property("code", "busy");
  });
});
