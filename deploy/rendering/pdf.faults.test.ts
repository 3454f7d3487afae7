import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { listen } from "../../scripts/testing/loopback-server.ts";
import { startNats } from "../../scripts/testing/nats-server.ts";
import { childrenOf } from "../../scripts/testing/process-children.ts";
import { RoleProcess } from "../../scripts/testing/role-process.ts";
import { until } from "../../scripts/testing/until.ts";

/**
 * A page that takes 5 s: enough time to kill a process meanwhile, but short compared with the timeouts of these
 * tests.
 */
const SLOW = { html: "<h1>Hello</h1>", waitForTimeout: 5_000 };

/** Limit of each wait, on a busy machine too. */
const WAIT_MS_MAX = 120_000;

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
}

describe("PDFs in progress", function () {
  this.timeout(600_000);
  let folder: string;
  let instance: RoleProcess;
  let nats: Awaited<ReturnType<typeof startNats>>;
  let receiver: Awaited<ReturnType<typeof listen>>;
  const spans: Span[] = [];

  beforeEach(async () => {
    spans.length = 0;
    const server = createServer(async (incoming, response) => {
      for (const { scopeSpans } of JSON.parse(await text(incoming)).resourceSpans) {
        for (const one of scopeSpans) spans.push(...one.spans);
      }
      response.setHeader("Content-Type", "application/json").end("{}");
    });
    receiver = await listen(server, "127.0.0.1");
    folder = await mkdtemp(join(tmpdir(), "trunkline-pdfs-"));
    // If the test runs as root, browsers run as another user. Their profiles are in this folder, so that user must be
    // able to read it.
    await chmod(folder, 0o755);
    nats = await startNats();
    instance = await RoleProcess.start("one", folder, {
      TRUNKLINE_NATS_URL: nats.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${receiver.port}`,
    });
    await instance.ready();
  });
  afterEach(async () => {
    await instance[Symbol.asyncDispose]();
    await nats.stop();
    await receiver.close();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("are printed although their browser is killed", async function () {
    if (process.platform !== "linux") this.skip();
    const { pdfs, begun } = await print(4);
    await begun();
    const killed = await killBrowsers();
    expect(killed).to.be.above(0);
    expect(await Promise.all(pdfs)).to.deep.equal(Array(4).fill("200 %PDF-"));
    expect(instance.lines.join("\n")).to.include("task failed, will be tried again");
    const isCounted = async () => (await used()) === 4;
    await until("the time of each is counted", isCounted, WAIT_MS_MAX);
  });

  it("are printed before a stop ends", async () => {
    const { pdfs, begun } = await print(2);
    await begun();
    instance.signal("SIGTERM");
    expect(await Promise.all(pdfs)).to.deep.equal(Array(2).fill("200 %PDF-"));
    expect(await instance.exit()).to.equal(0);
  });

  it("leave one trace from the request to the account that counts their browser time", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const { pdfs } = await print(1, { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    expect(await Promise.all(pdfs)).to.deep.equal(["200 %PDF-"]);
    const named = (wanted: string) =>
      spans.find((span) => span.traceId === traceId && span.name === wanted);
    const told = await until("the last", () => named("browser-time used"), WAIT_MS_MAX);
    const task = await until("the task", () => named("render pdf"), WAIT_MS_MAX);
    const request = await until(
      "the request",
      () => named("POST /accounts/{account_id}/browser-rendering/pdf"),
      WAIT_MS_MAX,
    );
    const admitted = await until("the call", () => named("browser-time admit"), WAIT_MS_MAX);
    expect(told.parentSpanId).to.equal(task.spanId);
    expect(task.parentSpanId).to.equal(request.spanId);
    expect(admitted.parentSpanId).to.equal(request.spanId);
    expect(request.parentSpanId).to.equal("b7ad6b7169203331");
  });

  /**
   * Requests `count` PDFs in parallel. `begun` resolves when browsers work on at least two of them, or on the only
   * one.
   */
  async function print(count: number, headers: Record<string, string> = {}) {
    const { base_url, account_id, api_token } = await instance.credentials();
    const one = async () => {
      const response = await fetch(
        `${base_url}/accounts/${account_id}/browser-rendering/pdf?cacheTTL=0`,
        {
          method: "POST",
          headers: {
            Authorization: `Bearer ${api_token}`,
            "Content-Type": "application/json",
            ...headers,
          },
          body: JSON.stringify(SLOW),
        },
      );
      return `${response.status} ${(await response.text()).slice(0, 5)}`;
    };
    const pdfs = Array.from({ length: count }, one);
    const inUse = async () =>
      Number(/^trunkline_browser_contexts_in_use (\d+)$/m.exec(await instance.metrics())?.[1]);
    const isAtThem = async () => (await inUse()) >= Math.min(count, 2);
    return { pdfs, begun: () => until("a browser is at them", isAtThem, WAIT_MS_MAX) };
  }

  async function killBrowsers(): Promise<number> {
    let killed = 0;
    for (const pid of childrenOf(instance.pid)) {
      const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (!/--headless|headless[-_]shell/.test(command)) continue;
      process.kill(pid, "SIGKILL");
      killed += 1;
    }
    return killed;
  }

  /** Returns the number of tasks that were reported to the account today. */
  async function used(): Promise<number> {
    const { base_url, account_id, api_token } = await instance.credentials();
    const response = await fetch(`${base_url}/accounts/${account_id}/browser-rendering/usage`, {
      headers: { Authorization: `Bearer ${api_token}` },
    });
    const { result } = (await response.json()) as { result: { days: { tasks: number }[] } };
    return result.days[0]?.tasks ?? 0;
  }
});
