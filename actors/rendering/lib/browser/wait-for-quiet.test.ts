import { EventEmitter } from "node:events";
import { expect } from "chai";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { NETWORK_QUIET_MS, RequestsInFlight, STOOD_STILL_MS } from "./wait-for-quiet.ts";

const QUIET_MS_MAX = 20_000;
/** Longer than the page below takes to send its requests, except on a very busy machine. */
const BUSY_MS = 1_500;

describe("RequestsInFlight", function () {
  this.timeout(60_000);

  it("quiet() resolves though of a request beginning and end are read at once", async () => {
    await using pool = openPool();
    await using context = await pool.newContext(new AbortController().signal);
    const { page } = context;
    const ended: string[] = [];
    page.on("requestfailed", (request) => ended.push(request.url()));
    const requests = new RequestsInFlight(page, systemClock);
    // The browser itself refuses this port, so the requests end without any work of this process.
    const html = `<script>
      const made = new Promise((resolve) => setTimeout(() => {
        const urls = Array.from({ length: 20 }, (_, i) => "http://127.0.0.1:1/" + i);
        resolve(Promise.allSettled(urls.map((url) => fetch(url))).then(() => true));
      }, 50));
    </script>`;
    await page.setContent(html);
    // Blocks this process, as other work would, so that it reads no events of the browser during that time.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
    // If the page starts its requests only after the block, their events are read as they arrive. Then this run
    // proves less.
    await page.evaluate("made");
    await requests.quiet(0, { signal: AbortSignal.timeout(QUIET_MS_MAX), clock: systemClock });
    expect(ended).to.have.length(20);
  });

  it("quiet() does not count a time in which the machine stood still", async () => {
    let now = 0;
    const waits: number[] = [];
    const clock: Clock = {
      ...systemClock,
      monotonic: () => now,
      async wait(ms) {
        waits.push(ms);
        now += waits.length === 1 ? ms + STOOD_STILL_MS : ms;
      },
    };
    const requests = new RequestsInFlight(new EventEmitter() as never, clock);
    await requests.quiet(0, { signal: new AbortController().signal, clock });
    expect(waits).to.deep.equal([NETWORK_QUIET_MS, NETWORK_QUIET_MS]);
  });
});
