import { expect } from "chai";
import {
  RENDER_JOBS_AT_ONCE_MAX,
  RENDER_JOBS_WAITING_MAX,
} from "../../../../schemas/rendering/limits.ts";
import { renderJobs, requestObjectOf } from "../../../../schemas/rendering/render-jobs.ts";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { FairScene } from "../../../../scripts/testing/fair-scene.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";

/**
 * Maximum time of a PDF behind 1,000 jobs of another account, as a multiple of the time without these jobs. Measured
 * with varying other load: 0.4 to 1.8. If accounts did not take turns, it would be more than 500.
 */
const SLOWER_MAX = 3;
const BYTES_MAX = 100_000_000;
const ONE = "a".repeat(32);
const OTHER = "b".repeat(32);

describe("jobs of one account beside another's calls", function () {
  this.timeout(240_000);

  it("an account's PDF is printed behind 1,000 hanging jobs of another about as fast as alone", async () => {
    await using site = await WebSite.start();
    await using scene = await FairScene.start();
    const { world, objects, pool } = scene;
    await scene.print(OTHER);
    const beforeMs = await scene.quickest(OTHER);
    const url = site.page("/hangs", () => {});
    const request = Buffer.from(JSON.stringify({ url, gotoOptions: { timeout: 60_000 } }));
    const ids = Array.from({ length: RENDER_JOBS_WAITING_MAX }, (_, index) =>
      index.toString(16).padStart(32, "0"),
    );
    const room = { requestBytes: request.length, bytesMax: BYTES_MAX };
    for (let from = 0; from < ids.length; from += 50) {
      await Promise.all(
        ids.slice(from, from + 50).map(async (id) => {
          await objects.putBytes(requestObjectOf(ONE, id), request);
          const job = { ...room, id, call: "pdf" as const, cacheTtlS: 0 };
          await world.client.call(renderJobs, ONE, "create", job);
        }),
      );
    }
    await until("the account has as many pages as it may", () => scene.isFull);
    await until("the account has as many tasks as it may", async () => {
      return (await world.count(STREAMS.tasks)) === RENDER_JOBS_AT_ONCE_MAX;
    });
    const behindMs = await scene.quickest(OTHER);
    // Calls of the account itself wait only behind those of its jobs that are in the lane. Cancelling a job closes
    // its page.
    for (const id of ids) await world.client.call(renderJobs, ONE, "cancel", { id });
    expect(await scene.print(ONE)).to.be.above(500);
    await until("the lane is empty", async () => (await world.count(STREAMS.tasks)) === 0);
    await until("all pages are closed", () => pool.contextsInUse === 0);
    // Other load on the machine may change meanwhile, so the time without the jobs is measured both before and after.
    const aloneMs = Math.max(beforeMs, await scene.quickest(OTHER));
    console.log(`      ${behindMs.toFixed(1)} ms behind them, ${aloneMs.toFixed(1)} ms alone`);
    expect(behindMs).to.be.at.most(SLOWER_MAX * aloneMs);
  });
});
