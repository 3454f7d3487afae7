import { expect } from "chai";
import { pino } from "pino";
import { Registry } from "prom-client";
import { startHealthServer, startMetricsServer } from "./health-server.ts";

describe("health server", () => {
  it("startHealthServer() answers 503 naming the missing parts, and 200 once none is missing", async () => {
    let missing = ["an owner for every shard"];
    const { port, stop } = await start(() => missing);
    const early = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(early.status).to.equal(503);
    expect(await early.text()).to.include("Cannot serve: an owner for every shard is missing");
    missing = [];
    const ready = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(ready.status).to.equal(200);
    await stop();
  });

  it("startHealthServer() shows only the process's metrics", async () => {
    const { port, stop } = await start(() => []);
    const url = `http://127.0.0.1:${port}/metrics`;
    expect((await fetch(url)).status).to.equal(401);
    const metrics = await fetch(url, { headers: { Authorization: "Bearer right" } });
    expect(await metrics.text()).to.include("process_resident_memory_bytes");
    const other = await fetch(`http://127.0.0.1:${port}/v4/accounts`);
    expect(other.status).to.equal(404);
    await stop();
  });

  it("startMetricsServer() serves the metrics on a separate port, and the health port serves none", async () => {
    const registry = new Registry();
    const logger = pino({ level: "silent" });
    const metricsToken = async () => "right";
    const shared = { host: "127.0.0.1", port: 0, logger, registry, metricsToken };
    const health = await startHealthServer({ ...shared, missing: () => [], hasMetrics: false });
    const metrics = await startMetricsServer({ ...shared, setting: "TRUNKLINE_METRICS_PORT" });
    const ask = (port: number, path: string, headers = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, { headers });
    const headers = { Authorization: "Bearer right" };
    expect((await ask(health.port, "/metrics", headers)).status).to.equal(404);
    expect((await ask(metrics.port, "/metrics")).status).to.equal(401);
    const shown = await ask(metrics.port, "/metrics", headers);
    expect(await shown.text()).to.include("process_resident_memory_bytes");
    expect((await ask(metrics.port, "/healthz")).status).to.equal(404);
    const taken = startMetricsServer({
      ...shared,
      port: metrics.port,
      setting: "TRUNKLINE_METRICS_PORT",
    });
    expect((await taken.catch((error) => error)).message).to.include(
      "the port is in use, TRUNKLINE_METRICS_PORT chooses another",
    );
    await Promise.all([health.stop(), metrics.stop()]);
  });

  it("startHealthServer() reports in one line that the port is in use", async () => {
    const { port, stop } = await start(() => []);
    const failure = await start(() => [], port).catch((error) => error);
    expect(failure.message).to.equal(
      `Cannot listen on 127.0.0.1:${port}: the port is in use, TRUNKLINE_PORT chooses another`,
    );
    await stop();
  });
});

const start = (missing: () => readonly string[], port = 0) =>
  startHealthServer({
    host: "127.0.0.1",
    port,
    missing,
    metricsToken: async () => "right",
    logger: pino({ level: "silent" }),
    registry: new Registry(),
  });
