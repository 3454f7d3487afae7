import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { browserTime } from "../../../schemas/rendering/browser-time.ts";
import {
  JOB_WEBHOOK_SECRET_CHARS_MAX,
  JOB_WEBHOOK_URL_CHARS_MAX,
  RENDER_JOB_KEPT_MS,
} from "../../../schemas/rendering/limits.ts";
import { renderJobs, requestObjectOf } from "../../../schemas/rendering/render-jobs.ts";
import { until } from "../../../scripts/testing/until.ts";
import { openAccount, type TestGateway, testGateway } from "../../testing/test-gateway.ts";

const ASYNC = { Prefer: "respond-async" };
const WEBHOOK = { url: "https://receiver.example/hook", secret: "a secret" };

/**
 * Returns a client whose host of jobs drops the request key of `content` jobs, as a host of an older version does.
 */
const dropsKeys = (actors: ActorClient): ActorClient => ({
  ...actors,
  call: (async (...[contract, key, message, input, options]: Parameters<ActorClient["call"]>) => {
    const { requestKey: _, ...known } = input as { requestKey?: string; call?: string };
    const drops =
      contract.kind === renderJobs.kind && message === "create" && known.call === "content";
    return actors.call(contract, key, message, drops ? known : input, options);
  }) as ActorClient["call"],
});

describe("routes of rendering jobs", () => {
  let gateway: TestGateway;
  let base: string;
  before(async () => {
    gateway = await testGateway();
    base = `/v4/accounts/${gateway.accountId}/browser-rendering`;
  });
  after(() => gateway.stop());

  const post = (call: string, json: object, headers: Record<string, string> = {}) =>
    gateway.ask(`${base}/${call}`, { method: "POST", json, headers });
  const start = async (call: string, json: object): Promise<string> => {
    const { status, json: answer } = await post(call, json, ASYNC);
    expect(status, JSON.stringify(answer)).to.equal(202);
    return answer?.result.id;
  };
  const jobOf = async (id: string) => (await gateway.ask(`${base}/jobs/${id}`)).json?.result;
  const ended = (id: string) =>
    until("the job has ended", async () => {
      const job = await jobOf(id);
      return !["queued", "running"].includes(job.status) && job;
    });
  const resultOf = (id: string) => gateway.ask(`${base}/jobs/${id}/result`);

  it("a call with Prefer: respond-async answers 202 with the job and its path", async () => {
    const { status, headers, json } = await post("pdf?cacheTTL=0", { html: "x" }, ASYNC);
    expect(status).to.equal(202);
    expect(headers.get("preference-applied")).to.equal("respond-async");
    expect(headers.get("content-type")).to.match(/^application\/json/);
    const { id } = json?.result ?? {};
    expect(json?.result).to.include({ call: "pdf", status: "queued" });
    expect(headers.get("location")).to.equal(`${base}/jobs/${id}`);
    expect(await ended(id)).to.include({ id, status: "completed" });
    expect(gateway.printer.cacheTtlS).to.equal(0);
    const younger = await gateway.ask(`${base.replace("rendering", "run")}/pdf`, {
      ...{ method: "POST", json: { html: "x" }, headers: ASYNC },
    });
    expect(younger.headers.get("location")).to.match(/\/browser-run\/jobs\/[0-9a-f]{32}$/);
    const { headers: slash } = await post("pdf/?cacheTTL=0", { html: "x" }, ASYNC);
    expect(slash.get("location")).to.match(/\/browser-rendering\/jobs\/[0-9a-f]{32}$/);
    // The next test counts tasks.
    for (const at of [younger.headers, slash]) {
      await ended(at.get("location")?.split("/").at(-1) ?? "");
    }
  });

  it("a call without the preference answers itself, and refuses a webhook", async () => {
    const before = gateway.printer.tasks;
    const { status, headers } = await post("pdf", { html: "x" }, { Prefer: "wait=10" });
    expect(status).to.equal(200);
    expect(headers.get("preference-applied")).to.equal(null);
    for (const call of ["pdf", "screenshot", "content"]) {
      const refused = await post(call, { html: "x", webhook: WEBHOOK });
      expect(refused.status).to.equal(400);
      expect(refused.json?.errors[0]?.source?.pointer).to.equal("/webhook");
      expect(refused.json?.errors[0]?.message).to.contain("Prefer: respond-async");
    }
    expect(gateway.printer.tasks).to.equal(before + 1);
  });

  const CALLS: [call: string, body: object][] = [
    ["pdf", { html: "x" }],
    ["pdf", { html: "stream 3" }],
    ["pdf", { html: "status 404" }],
    ["screenshot", { html: "x", screenshotOptions: { type: "jpeg" } }],
    ["screenshot", { html: "x", screenshotOptions: { encoding: "base64" } }],
    ["content", { html: "x" }],
    ["markdown", { html: "x" }],
    ["links", { html: "x" }],
    ["scrape", { html: "x", elements: [{ selector: "p" }] }],
    ["snapshot", { html: "x" }],
    ["json", { html: "x", prompt: "the title" }],
    ["accessibilityTree", { html: "x" }],
  ];
  for (const [call, body] of CALLS) {
    it(`the result of ${call} of ${JSON.stringify(body)} is what the call itself answers`, async () => {
      const id = await start(call, body);
      const { result } = await ended(id);
      const [now, later] = [await post(call, body), await resultOf(id)];
      expect(later.status).to.equal(200);
      expect(later.text).to.equal(now.text);
      for (const name of ["content-type", "x-browser-ms-used", "x-target-status"]) {
        expect(later.headers.get(name), name).to.equal(now.headers.get(name));
      }
      expect(Number(later.headers.get("x-queued-ms"))).to.be.at.least(0);
      expect(later.headers.get("content-length")).to.equal(String(later.text.length));
      expect(result.bytes).to.equal(now.text.length);
      expect(now.headers.get("content-type")).to.contain(result.mediaType);
    });
  }

  it("the result of a failed job is the refusal of the call", async () => {
    for (const html of ["refuse navigation_timed_out", "refuse queue_full", "blame /html"]) {
      const id = await start("pdf", { html });
      const job = await ended(id);
      expect(job.status).to.equal("failed");
      const [now, later] = [await post("pdf", { html }), await resultOf(id)];
      expect(later.status).to.equal(now.status);
      expect(later.json).to.deep.equal(now.json);
      expect(job.error.code).to.equal(now.json?.errors[0]?.code);
      for (const name of ["x-browser-ms-used", "retry-after"]) {
        expect(later.headers.get(name), name).to.equal(now.headers.get(name));
      }
    }
  });

  it("a result is refused while it does not exist, and after the job was cancelled, expired or removed", async () => {
    const id = await start("pdf", { html: "hang" });
    await until("it runs", async () => (await jobOf(id)).status === "running");
    const early = await resultOf(id);
    expect(early.status).to.equal(409);
    expect(early.json?.errors[0]?.message).to.contain("running");
    const cancelled = await gateway.ask(`${base}/jobs/${id}`, { method: "DELETE" });
    expect(cancelled.json?.result).to.include({ id, status: "cancelled" });
    // Waits until the worker has closed the job's page.
    await gateway.printer.cancelled;
    const late = await resultOf(id);
    expect([late.status, late.json?.errors[0]?.message]).to.deep.equal([
      409,
      "Cannot read result: the job is cancelled",
    ]);
    const again = await gateway.ask(`${base}/jobs/${id}`, { method: "DELETE" });
    expect(again.status).to.equal(409);
    const done = await start("pdf", { html: "x" });
    await ended(done);
    const [name = ""] = [...gateway.objects.objects.keys()].filter((one) => one.includes(done));
    gateway.clock.now += RENDER_JOB_KEPT_MS;
    expect((await resultOf(done)).status).to.equal(404);
    expect((await jobsOf()).map((job: { id: string }) => job.id)).to.not.include(done);
    await gateway.actors.remind();
    expect(gateway.objects.objects.has(name)).to.equal(false);
    const removed = await start("pdf", { html: "x" });
    await ended(removed);
    gateway.objects.objects.clear();
    expect((await resultOf(removed)).status).to.equal(404);
  });

  const jobsOf = async (query = "") => (await gateway.ask(`${base}/jobs${query}`)).json?.result;

  it("the list is in pages, newest first, and by status", async () => {
    const ids: string[] = [];
    for (const html of ["a", "refuse busy", "c"]) ids.push(await start("pdf", { html }));
    for (const id of ids) await ended(id);
    const first = await gateway.ask(`${base}/jobs?limit=2`);
    expect(first.json?.result.map((job: { id: string }) => job.id)).to.deep.equal([
      ...ids.slice(1).reverse(),
    ]);
    const { cursor } = first.json?.result_info ?? {};
    expect(
      (await jobsOf(`?limit=1&cursor=${cursor}`)).map((job: { id: string }) => job.id),
    ).to.deep.equal([ids[0]]);
    expect((await jobsOf("?status=failed&limit=1"))[0].id).to.equal(ids[1]);
    const wrong = await gateway.ask(`${base}/jobs?cursor=x`);
    expect([wrong.status, wrong.json?.errors[0]?.source?.pointer]).to.deep.equal([
      400,
      "/query/cursor",
    ]);
    expect((await gateway.ask(`${base}/jobs?status=other`)).status).to.equal(400);
  });

  it("no account sees, reads or cancels a job of another", async () => {
    const id = await start("pdf", { html: "x" });
    await ended(id);
    const other = await openAccount(gateway.actors, "Two");
    for (const path of [id, `${id}/result`]) {
      const asked = await gateway.ask(`/v4/accounts/${other}/browser-rendering/jobs/${path}`);
      expect(asked.status).to.equal(404);
    }
    for (const path of ["x", `${id}0`, "0".repeat(32)]) {
      expect((await gateway.ask(`${base}/jobs/${path}`)).status, path).to.equal(404);
      expect((await gateway.ask(`${base}/jobs/${path}/result`)).status, path).to.equal(404);
    }
    const reading = await gateway.tokenWith("browser-rendering.read");
    const refused = await gateway.ask(`${base}/jobs/${id}`, { method: "DELETE", token: reading });
    expect(refused.status).to.equal(403);
  });

  it("a job whose request or result has no room is refused, with the reason", async () => {
    const accountId = await openAccount(gateway.actors, "Small");
    const token = await gateway.tokenIn(accountId);
    const { capacityBytes } = gateway.objects;
    gateway.objects.capacityBytes = 4_000;
    const own = `/v4/accounts/${accountId}/browser-rendering`;
    const asJob = (html: string) =>
      gateway.ask(`${own}/pdf`, { method: "POST", token, json: { html }, headers: ASYNC });
    const endOf = async (id: string) =>
      until("the job has ended", async () => {
        const { json } = await gateway.ask(`${own}/jobs/${id}`, { token });
        return !["queued", "running"].includes(json?.result.status) && json?.result;
      });
    const large = await asJob("y".repeat(1_000));
    expect([large.status, large.json?.errors[0]?.code]).to.deep.equal([409, 1_007]);
    expect(large.json?.errors[0]?.message).to.contain("1000");
    for (const html of ["chunks 1", "stream 1"]) {
      const { id } = (await asJob(html)).json?.result ?? {};
      const { status, error } = await endOf(id);
      expect([status, error.code], html).to.deep.equal(["failed", 1_007]);
      const { headers } = await gateway.ask(`${own}/jobs/${id}/result`, { token });
      expect(headers.get("x-browser-ms-used")).to.equal("34");
    }
    gateway.objects.capacityBytes = capacityBytes;
    // The store holds no objects of these jobs.
    await gateway.actors.settled();
    const names = [...gateway.objects.objects.keys()];
    expect(names.filter((name) => name.startsWith(accountId))).to.deep.equal([]);
  });

  it("an account without browser time starts no job", async () => {
    const poor = await testGateway({ config: { browserSecondsPerDay: 1 } });
    const used = { ms: 1_000, taskId: "t" };
    await poor.actors.send(browserTime, poor.accountId, "used", used);
    await poor.actors.settled();
    const path = `/v4/accounts/${poor.accountId}/browser-rendering/pdf`;
    const refused = await poor.ask(path, { method: "POST", json: { html: "x" }, headers: ASYNC });
    await poor.stop();
    expect(refused.status).to.equal(429);
    expect(poor.objects.objects.size).to.equal(0);
  });

  it("a job whose host has an older version, and drops the key of the request, finds the request as it came", async () => {
    const older = await testGateway({ slots: 1, through: dropsKeys });
    const path = `/v4/accounts/${older.accountId}/browser-rendering`;
    const started = async (call: string, html: string): Promise<string> => {
      const asked = { method: "POST", json: { html }, headers: ASYNC };
      const { status, json } = await older.ask(`${path}/${call}`, asked);
      expect(status).to.equal(202);
      return json?.result.id;
    };
    const blocking = await started("pdf", "hang");
    const id = await started("content", "x");
    const object = older.objects.objects.get(requestObjectOf(older.accountId, id));
    expect(Buffer.from(object ?? []).toString()).to.equal('{"html":"x"}');
    await older.ask(`${path}/jobs/${blocking}`, { method: "DELETE" });
    const status = await until("the job has ended", async () => {
      const { json } = await older.ask(`${path}/jobs/${id}`);
      return !["queued", "running"].includes(json?.result.status) && json?.result.status;
    });
    await older.stop();
    expect(status).to.equal("completed");
  });

  it("a webhook's secret is stored sealed, and shown nowhere", async () => {
    const id = await start("pdf", { html: "hang", webhook: WEBHOOK });
    expect(await jobOf(id)).to.deep.include({ webhook: { url: WEBHOOK.url } });
    const answers = [await gateway.ask(`${base}/jobs/${id}`), await gateway.ask(`${base}/jobs`)];
    for (const { text } of answers) expect(text).to.not.contain("secret");
    const stored = [...gateway.objects.objects.values()].join();
    expect(stored).to.not.contain(WEBHOOK.secret).and.not.contain("webhook");
    expect(JSON.stringify(gateway.logs)).to.not.contain(WEBHOOK.secret);
    const found = await gateway.actors.call(renderJobs, gateway.accountId, "get", { id });
    expect(JSON.stringify(found)).to.not.contain("secret");
    await gateway.ask(`${base}/jobs/${id}`, { method: "DELETE" });
  });

  it("a webhook has its bounds, and each fault its pointer", async () => {
    const text = (length: number) => "s".repeat(length);
    const url = (length: number) => `https://x/${text(length - 10)}`;
    const good = [
      { url: url(JOB_WEBHOOK_URL_CHARS_MAX), secret: text(JOB_WEBHOOK_SECRET_CHARS_MAX) },
      { url: "http://x", secret: "s" },
    ];
    for (const webhook of good) await start("pdf", { html: "x", webhook });
    const bad: [object | string, string][] = [
      [{ url: url(JOB_WEBHOOK_URL_CHARS_MAX + 1), secret: "s" }, "/webhook/url"],
      [{ url: "ftp://x", secret: "s" }, "/webhook/url"],
      [{ url: "https://user:word@x", secret: "s" }, "/webhook/url"],
      [{ secret: "s" }, "/webhook/url"],
      [{ url: "https://x" }, "/webhook/secret"],
      [{ url: "https://x", secret: "" }, "/webhook/secret"],
      [{ url: "https://x", secret: text(JOB_WEBHOOK_SECRET_CHARS_MAX + 1) }, "/webhook/secret"],
      [{ url: "https://x", secret: "s", more: 1 }, "/webhook/more"],
      ["https://x", "/webhook"],
    ];
    for (const [webhook, pointer] of bad) {
      const refused = await post("pdf", { html: "x", webhook }, ASYNC);
      expect(refused.status, JSON.stringify(webhook)).to.equal(400);
      expect(refused.json?.errors[0]?.source?.pointer).to.equal(pointer);
    }
  });
});
