import { expect } from "chai";
import { pino } from "pino";
import { Registry } from "prom-client";
import { PdfRequest } from "../schemas/rendering/http/pdf.ts";
import { render } from "../schemas/rendering/render.ts";
import { startWorld } from "../scripts/testing/actor-world.ts";
import { until } from "../scripts/testing/until.ts";
import { findChromium } from "../scripts/tools.ts";
import { startBrowserWorkers, TASKS } from "./main.ts";
import { browserTimeActor } from "./rendering/browser-time/browser-time.ts";
import { systemClock } from "./runtime/lib/clock.ts";

describe("startBrowserWorkers", function () {
  this.timeout(120_000);

  it("starts no browser until a page needs one, and ends it when none has for a while", async () => {
    await using world = await startWorld({ definitions: [browserTimeActor], tasks: TASKS });
    await world.host();
    const registry = new Registry();
    const part = await startBrowserWorkers(
      {
        ...{ bus: world.bus, clock: systemClock, registry },
        logger: pino({ level: "silent" }),
        version: "test",
      },
      {
        egress: { allow: [], deny: [] },
        chromium: findChromium(),
        browserSecondsPerDay: 0,
        browserIdleSeconds: 1,
        ai: undefined,
        dnsServers: [],
      },
    );
    try {
      const browsers = async () => {
        const line = /^(\w*browsers)(?:\{[^}]*\})? (\d+)$/m.exec(await registry.metrics());
        return line && Number(line[2]);
      };
      expect(await browsers()).to.equal(0);
      const parameters = PdfRequest.parse({ html: "<p>x", waitForTimeout: 500 });
      const input = { account: "a", parameters, deadlineAt: systemClock.now() + 60_000 };
      const options = { deadlineMs: 60_000, signal: new AbortController().signal };
      const printing = world.client.run(render, "a", "pdf", input, options);
      await until("a browser runs", async () => (await browsers()) === 1);
      for await (const _ of (await printing).chunks);
      await until("no browser runs", async () => (await browsers()) === 0);
    } finally {
      await part.stop(5_000);
    }
  });
});
