/**
 * Kills every process while rendering jobs run. Each job must end exactly once, with a complete result and a signed
 * webhook.
 */
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { newSecretKey } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import type { WireJob } from "../../schemas/rendering/http/render-jobs.ts";
import { CrawlScene } from "../../scripts/testing/crawl-scene.ts";
import { startHttpServer } from "../../scripts/testing/loopback-server.ts";
import { pageTexts } from "../../scripts/testing/pdf-file.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";

const JOBS = 24;
/**
 * Timeout for all jobs. A job takes seconds, some of its attempts take ten times as long, and a busy machine
 * multiplies both.
 */
const JOBS_MS_MAX = 400_000;
const AGAIN_MS = 100;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

interface Answer {
  status: number;
  bytes: Buffer;
}

describe("rendering jobs under faults", function () {
  this.timeout(900_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  let scene: CrawlScene;
  let receiver: Awaited<ReturnType<typeof startHttpServer>>;
  /** The received events with a valid signature, by `webhook-id`. */
  const events = new Map<string, { type: string; data: WireJob }>();
  let started: AsyncDisposableStack;
  beforeEach(async () => {
    started = new AsyncDisposableStack();
    events.clear();
    receiver = await startHttpServer(async (request, response) => {
      const headers = request.headers as Record<string, string>;
      const event = new Webhook(SECRET).verify(await text(request), headers);
      events.set(headers["webhook-id"] ?? "", event as { type: string; data: WireJob });
      response.end();
    }, "127.0.0.2");
    started.defer(() => receiver.close());
    // The key for secrets. The gateway seals the secrets of webhooks with it, and the hosts of actors open them.
    const environment = { TRUNKLINE_SECRETS_KEY: newSecretKey() };
    scene = started.use(await CrawlScene.start({ seed, actors: 2, browsers: 2, environment }));
  });
  afterEach(async function () {
    if (this.currentTest?.state === "failed") console.log(scene.errorLines.slice(-40).join("\n"));
    await started.disposeAsync();
  });

  it("kills processes one after the other, the bus, and all at once", async () => {
    const ids = await startAll();
    for (const role of ["browser", "actors", "gateway"] as const) {
      await clock.wait(scene.random.integer(0, 1_500));
      await scene.killOne(role);
    }
    await clock.wait(scene.random.integer(0, 1_500));
    await scene.killBus(scene.random.integer(0, LEASE_TTL_MS + 500));
    const cancelled = await start("cancelled", 120_000);
    await until("it runs", async () => (await jobOf(cancelled)).status === "running", JOBS_MS_MAX);
    await patiently(`/${cancelled}`, "DELETE");
    await scene.killAll();
    const late = await startAll();
    await expectWhole([...ids, ...late]);
    expect((await jobOf(cancelled)).status).to.equal("cancelled");
    const all = [...ids, ...late, cancelled];
    await until("every webhook has come", () => events.size === all.length, JOBS_MS_MAX);
    const types = new Map([...events.values()].map(({ type, data }) => [data.id, type]));
    for (const id of ids) expect(types.get(id)).to.equal("job.completed");
    expect(types.get(cancelled)).to.equal("job.cancelled");
    await expectIdle();
  });

  async function startAll(): Promise<string[]> {
    const numbers = Array.from({ length: JOBS }, (_, number) => number);
    return await Promise.all(numbers.map((number) => start(`page ${number}`, 700)));
  }

  async function start(name: string, waitForTimeout: number): Promise<string> {
    const webhook = { url: `http://127.0.0.2:${receiver.port}/hook`, secret: SECRET };
    const body = { html: `<p>${name}`, waitForTimeout, webhook };
    const { status, bytes } = await ask("pdf?cacheTTL=0", "POST", body);
    expect(status, bytes.toString()).to.equal(202);
    return JSON.parse(bytes.toString()).result.id;
  }

  /** Asserts that every job is completed, and that its result is a PDF of the page that the job requested. */
  async function expectWhole(ids: readonly string[]): Promise<void> {
    for (const [index, id] of ids.entries()) {
      const job = await until(
        "the job has ended",
        async () => {
          const found = await jobOf(id);
          if (!["queued", "running"].includes(found.status)) return found;
          await clock.wait(AGAIN_MS);
          return undefined;
        },
        JOBS_MS_MAX,
      );
      expect(job.status, JSON.stringify(job)).to.equal("completed");
      const { bytes } = await patiently(`/${id}/result`);
      expect(bytes.length).to.equal(job.result?.bytes);
      expect(pageTexts(bytes).join()).to.contain(`page ${index % JOBS}`);
    }
  }

  /** Asserts that no page of a job is open any more. */
  async function expectIdle(): Promise<void> {
    await until(
      "all pages are closed",
      async () => {
        const metrics = scene.places.flatMap(({ role, instance }) =>
          role === "browser" && instance ? [instance.metrics()] : [],
        );
        const inUse = (await Promise.all(metrics)).map(
          (shown) => /^trunkline_browser_contexts_in_use (\d+)$/m.exec(shown)?.[1],
        );
        return inUse.length > 0 && inUse.every((count) => count === "0");
      },
      JOBS_MS_MAX,
    );
  }

  async function jobOf(id: string): Promise<WireJob> {
    return JSON.parse((await patiently(`/${id}`)).bytes.toString()).result;
  }

  /** Retries while the gateway or a process behind it is unreachable. */
  function patiently(path: string, method = "GET"): Promise<Answer> {
    return until(
      `an answer to ${method} ${path}`,
      async () => {
        const answer = await ask(`jobs${path}`, method).catch(() => undefined);
        if (answer && answer.status < 500) {
          expect(answer.status, answer.bytes.toString("utf8", 0, 500)).to.equal(200);
          return answer;
        }
        await clock.wait(AGAIN_MS);
        return undefined;
      },
      JOBS_MS_MAX,
    );
  }

  async function ask(path: string, method: string, json?: object): Promise<Answer> {
    const response = await fetch(scene.crawlsUrl.replace(/crawl$/, path), {
      method,
      headers: {
        ...scene.authorization,
        ...(json && { "Content-Type": "application/json", Prefer: "respond-async" }),
      },
      ...(json && { body: JSON.stringify(json) }),
    });
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
  }
});
