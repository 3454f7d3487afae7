import { expect } from "chai";
import { HoldingClock } from "../../../../scripts/testing/holding-clock.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { DRAWING_SAMPLE, DRAWING_SETTLE_MS, drawingSettled } from "./drawing-settled.ts";

/** Duration of the animations below, measured by the clock of the page. */
const MOVES_MS = 700;

describe("drawingSettled()", function () {
  this.timeout(60_000);
  const pool = openPool();
  before(() => pool.start());
  after(() => pool.close());

  const drawing = (draw: string) => `<script>
    const startedAt = performance.now();
    function frame() {
      const part = Math.min(1, (performance.now() - startedAt) / ${MOVES_MS});
      ${draw}
      if (part < 1) requestAnimationFrame(frame); else document.title = "ended";
    }
    requestAnimationFrame(frame);
  </script>`;
  const ended = `<script>document.querySelector("p").onanimationend = document.querySelector("p").ontransitionend =
    () => { document.title = "ended" }</script>`;
  const pages: Record<string, string> = {
    "a canvas": `<canvas width=300 height=150></canvas>${drawing(
      `document.querySelector("canvas").getContext("2d").fillRect(0, 0, 300 * part, 20);`,
    )}`,
    "an SVG image": `<svg width=300 height=150><rect height=20 /></svg>${drawing(
      `document.querySelector("rect").setAttribute("width", 300 * part);`,
    )}`,
    "a CSS animation": `<style>@keyframes fade { from { opacity: 0 } } p { animation: fade ${MOVES_MS}ms }</style><p>x${ended}`,
    "a CSS transition": `<style>p { opacity: 0; transition: opacity ${MOVES_MS}ms }</style><p>x${ended}<script>
      document.body.offsetHeight; document.querySelector("p").style.opacity = 1;</script>`,
    "a Web animation": `<p>x<script>document.querySelector("p").animate([{ opacity: 0 }, {}], ${MOVES_MS})
      .onfinish = () => { document.title = "ended" }</script>`,
  };

  /** Returns how long the wait took, and the title of the page after the wait. */
  async function settle(html: string, clock: Clock = systemClock) {
    const { signal } = new AbortController();
    await using context = await pool.newContext(signal);
    await context.page.setContent(`<!doctype html><title>moves</title>${html}`);
    const startedAt = performance.now();
    await drawingSettled(context, { signal, clock });
    const ms = performance.now() - startedAt;
    return { ms, title: await context.evaluate("document.title") };
  }

  for (const [what, html] of Object.entries(pages)) {
    it(`waits until ${what} has ended`, async () => {
      // On a busy machine the animation may begin after the time limit, so this clock never reaches the limit.
      const unbounded = new HoldingClock(DRAWING_SETTLE_MS);
      expect((await settle(html, unbounded)).title).to.equal("ended");
    });
  }

  it("distinguishes drawings in black, of which a pixel has no bit but those of its opacity", async () => {
    const { signal } = new AbortController();
    await using context = await pool.newContext(signal);
    await context.page.setContent(`<!doctype html><canvas width=300 height=150></canvas>`);
    const samples = new Set<unknown>();
    const WIDTHS = 60;
    for (let width = 1; width <= WIDTHS; width++) {
      await context.evaluate(
        `document.querySelector("canvas").getContext("2d").fillRect(0, 0, ${5 * width}, 20)`,
      );
      samples.add(await context.evaluate(DRAWING_SAMPLE));
    }
    expect(samples.size).to.equal(WIDTHS);
  });

  it("waits for animations without an end no longer than its bound, and for those of icons not at all", async () => {
    const endless = `<canvas width=300 height=150></canvas>${drawing(
      `document.querySelector("canvas").getContext("2d").fillRect(Math.random() * 300, Math.random() * 150, 9, 9);`,
    ).replace("part < 1", "true")}`;
    expect((await settle(endless)).ms).to.be.at.least(DRAWING_SETTLE_MS - 1);
    const spinner = `<style>@keyframes spin { to { rotate: 1turn } } p { animation: spin 1s infinite }</style><p>x`;
    const icon = `<svg width=20 height=20><rect width=20 height=20 /></svg>`;
    // With this clock a wait for either of them would not end.
    await settle(spinner + icon, new HoldingClock(DRAWING_SETTLE_MS));
  });
});
