import { expect } from "chai";
import { LANE_TASKS_MAX } from "../../../../schemas/limits.ts";
import { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { FairScene } from "../../../../scripts/testing/fair-scene.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";

/** Measured: 0.3 to 1.8 times, beside changing load. Without turns it was more than 500 times. */
const SLOWER_MAX = 3;

describe("pages of several accounts", function () {
  this.timeout(240_000);

  it("prints an account's small PDF behind 1,000 hanging pages of another about as fast as alone", async () => {
    await using site = await WebSite.start();
    await using scene = await FairScene.start();
    const hanging = PdfRequest.parse({
      url: site.page("/hangs", () => {}),
      gotoOptions: { timeout: 60_000 },
    });
    const tasks = () => scene.world.count(STREAMS.tasks);
    await scene.print("other");
    const beforeMs = await scene.quickest("other");
    for (let page = 0; page < LANE_TASKS_MAX; page++) {
      scene.print("one", hanging).catch(() => {});
    }
    await until("all pages are queued", async () => {
      return (await tasks()) === LANE_TASKS_MAX && scene.isFull;
    });
    const behindMs = await scene.quickest("other");
    scene.leaving.abort();
    await until("the lane is empty", async () => (await tasks()) === 0);
    scene.leaving = new AbortController();
    // Other load may begin or end meanwhile, so the test measures the time alone both before and after.
    const aloneMs = Math.max(beforeMs, await scene.quickest("other"));
    expect(behindMs).to.be.at.most(SLOWER_MAX * aloneMs);
  });
});
