import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { pino } from "pino";
import { Webhook } from "standardwebhooks";
import { accountActor } from "../../../actors/account/account/account.ts";
import { apiTokenActor } from "../../../actors/account/api-token/api-token.ts";
import { installationActor } from "../../../actors/account/installation/installation.ts";
import { requestLimitActor } from "../../../actors/account/request-limit/request-limit.ts";
import { userActor } from "../../../actors/account/user/user.ts";
import { endpointBreakerActor } from "../../../actors/apps/endpoint-breaker/endpoint-breaker.ts";
import { newSecretKey, SecretBox } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import { outgoingPlacesActor } from "../../../actors/apps/outgoing-places/outgoing-places.ts";
import { outgoingWebhookActor } from "../../../actors/apps/outgoing-webhook/outgoing-webhook.ts";
import { webhookPostWorker } from "../../../actors/apps/workers/webhook-post/webhook-post.ts";
import { browserTimeActor } from "../../../actors/rendering/browser-time/browser-time.ts";
import type { BrowserPool } from "../../../actors/rendering/lib/browser/browser-pool.ts";
import { RequestKeys } from "../../../actors/rendering/lib/request-keys/request-keys.ts";
import { answerRequestKeys } from "../../../actors/rendering/render-jobs/answer-request-keys.ts";
import { renderJobsActor } from "../../../actors/rendering/render-jobs/render-jobs.ts";
import { renderWorker } from "../../../actors/rendering/workers/render/render.ts";
import { BusLiveUpdates } from "../../../actors/runtime/bus/live.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { ObjectStore } from "../../../actors/runtime/store/object-store.ts";
import { outgoingWebhook } from "../../../schemas/apps/outgoing-webhook.ts";
import { objectSubjects, RENDER_JOBS_STORE } from "../../../schemas/subjects.ts";
import { type BusActors, busActors } from "../../../scripts/testing/bus-actors.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { pageTexts } from "../../../scripts/testing/pdf-file.ts";
import { guard, openPool, renderParts } from "../../../scripts/testing/printer.ts";
import { storedTexts } from "../../../scripts/testing/stored-texts.ts";
import { until as untilWithin } from "../../../scripts/testing/until.ts";
import { WebSite } from "../../../scripts/testing/web-site.ts";
import { type RunningGateway, startGateway } from "../../main.ts";
import { testConfig } from "../../testing/test-gateway.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/** Limit of each wait: on a busy machine, a browser takes long to start and to print. */
const WAIT_MS_MAX = 120_000;
const until: typeof untilWithin = (what, look) => untilWithin(what, look, WAIT_MS_MAX);
const ACTORS = [
  ...[accountActor, apiTokenActor, browserTimeActor, endpointBreakerActor, installationActor],
  ...[outgoingPlacesActor, outgoingWebhookActor, renderJobsActor, requestLimitActor, userActor],
];

interface Got {
  headers: IncomingHttpHeaders;
  body: string;
}

describe("rendering jobs on the bus", function () {
  this.timeout(300_000);
  let pool: BrowserPool;
  let bus: BusActors;
  let gateway: RunningGateway;
  let site: WebSite;
  let receiver: Awaited<ReturnType<typeof startHttpServer>>;
  let dataDir: string;
  let base: string;
  let accountId: string;
  let headers: Record<string, string>;
  const got: Got[] = [];

  before(async () => {
    pool = openPool();
    site = await WebSite.start();
    receiver = await startHttpServer(async (request, response) => {
      got.push({ headers: request.headers, body: await text(request) });
      response.end();
    }, "127.0.0.2");
    const secrets = new SecretBox([newSecretKey()]);
    const logger = pino({ level: "fatal" });
    bus = await busActors({
      actors: ACTORS,
      workers: (connection) => [
        renderWorker(
          {
            ...renderParts(pool),
            objects: new ObjectStore(connection, clock, RENDER_JOBS_STORE),
            requestKeys: new RequestKeys(connection),
          },
          { interactive: 2, batch: 1, browserMsPerDay: 0 },
        ),
        webhookPostWorker({ guard, blobs: new BlobStore(connection, clock), secrets, clock }),
      ],
    });
    dataDir = await mkdtemp(join(tmpdir(), "gateway-"));
    gateway = await startGateway({
      ...{ actors: bus.actors, blobs: new BlobStore(bus.bus, clock) },
      live: new BusLiveUpdates(bus.bus),
      secrets,
      jobs: { objects: new ObjectStore(bus.bus, clock, RENDER_JOBS_STORE), secrets },
      config: { ...testConfig, dataDir },
      logger,
    });
    answerRequestKeys({ bus: bus.bus, logger, secrets });
    const credentials = JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));
    accountId = credentials.account_id;
    base = `http://127.0.0.1:${gateway.port}/v4/accounts/${accountId}/browser-rendering`;
    headers = { Authorization: `Bearer ${credentials.api_token}` };
  });
  after(async () => {
    await gateway?.stop();
    await bus?.stop();
    await pool?.close();
    await receiver?.close();
    await site?.[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true });
  });

  const ask = async (path: string, method = "GET", json?: object, more = {}) => {
    const response = await fetch(base + path, {
      method,
      headers: { ...headers, ...more, ...(json && { "Content-Type": "application/json" }) },
      ...(json && { body: JSON.stringify(json) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = response.headers.get("content-type")?.includes("json");
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
    const body: any = isJson ? JSON.parse(bytes.toString()) : undefined;
    return { status: response.status, headers: response.headers, bytes, body };
  };
  const startedBy = async (form: FormData): Promise<string> => {
    const more = { ...headers, Prefer: "respond-async" };
    const response = await fetch(`${base}/pdf`, { method: "POST", headers: more, body: form });
    const { result } = (await response.json()) as { result: { id: string } };
    expect(response.status).to.equal(202);
    return result.id;
  };
  const start = async (call: string, json: object): Promise<string> => {
    const { status, body } = await ask(`/${call}`, "POST", json, { Prefer: "respond-async" });
    expect(status, JSON.stringify(body)).to.equal(202);
    return body.result.id;
  };
  const ended = (id: string) =>
    until("the job has ended", async () => {
      const { result } = (await ask(`/jobs/${id}`)).body;
      return !["queued", "running"].includes(result.status) && result;
    });
  const webhook = () => ({ url: `http://127.0.0.2:${receiver.port}/hook`, secret: SECRET });
  /** Resolves to the event about a job when its webhook has arrived with a valid signature. */
  const eventOf = (id: string) =>
    until("the webhook has come", () => {
      const found = got.find(({ body }) => body.includes(id));
      if (!found) return undefined;
      const sent = found.headers as Record<string, string>;
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      return new Webhook(SECRET).verify(found.body, sent) as any;
    });
  const stored = () =>
    bus.bus.subjectsOf(RENDER_JOBS_STORE.stream, objectSubjects("*").all[0] ?? "");

  it("prints a PDF, keeps it byte for byte, and posts a signed webhook", async () => {
    // Within the cache time, the job gets the same response as the synchronous call, so the test can compare the two
    // PDFs.
    const html = `<title>Kept</title><p>${"a large request ".repeat(20_000)}`;
    const now = await ask("/pdf?cacheTTL=600", "POST", { html });
    const id = await start("pdf?cacheTTL=600", { html, webhook: webhook() });
    expect(await ended(id)).to.include({ call: "pdf", status: "completed" });
    const later = await ask(`/jobs/${id}/result`);
    expect(later.headers.get("content-type")).to.equal("application/pdf");
    expect(later.headers.get("content-length")).to.equal(String(later.bytes.length));
    expect(later.bytes.toString("latin1", 0, 5)).to.equal("%PDF-");
    expect(Math.abs(later.bytes.length - now.bytes.length)).to.be.below(100);
    const event = await eventOf(id);
    expect(event).to.deep.include({ type: "job.completed" });
    expect(event.data).to.deep.include({ id, status: "completed" });
    expect(event.data.result).to.deep.equal({
      ...{ mediaType: "application/pdf", bytes: later.bytes.length },
    });
    await until("the job knows that its webhook has arrived", async () => {
      return (await ask(`/jobs/${id}`)).body.result.webhook.status === "arrived";
    });
    // Of the job's objects in the store, only the result remains.
    await until("the request is removed", async () => (await stored()).length === 1);
  });

  it("renders files that came as JSON or as a form, with the style that they bring along", async () => {
    const page = "# Top\n\n<link rel=stylesheet href=a/x.css><p>shown</p><p class=no>hidden</p>";
    const style = ".no { display: none }";
    const base64 = (content: string) => Buffer.from(content).toString("base64");
    const files = [
      { name: "index.md", base64: base64(page) },
      { name: "a/x.css", base64: base64(style) },
    ];
    const form = new FormData();
    form.append("files", new Blob([page]), "index.md");
    form.append("files", new Blob([style]), "a/x.css");
    for (const id of [await start("pdf", { files }), await startedBy(form)]) {
      expect(await ended(id)).to.include({ status: "completed" });
      const { bytes } = await ask(`/jobs/${id}/result`);
      expect(pageTexts(bytes)).to.deep.equal(["Topshown"]);
    }
  });

  it("joins sources, and names the one that fails", async () => {
    const files = [{ name: "two.md", base64: Buffer.from("# zwei").toString("base64") }];
    const pdfOptions = {
      ...{ displayHeaderFooter: true, headerTemplate: "<span></span>", margin: { bottom: "2cm" } },
      footerTemplate:
        "<i style='font-size:9px'><b class=pageNumber></b>of<b class=totalPages></b></i>",
    };
    const sources = [{ html: "eins" }, { file: "two.md" }];
    const id = await start("pdf", { files, sources, pdfOptions });
    expect(await ended(id)).to.include({ status: "completed" });
    const { bytes } = await ask(`/jobs/${id}/result`);
    expect(pageTexts(bytes)).to.deep.equal(["eins1of2", "zwei2of2"]);
    const failing = await start("pdf", { sources: [{ html: "x" }, { url: "http://127.0.0.1/" }] });
    const { status, error } = await ended(failing);
    expect([status, error.message.endsWith("(sources/1)")], error.message).to.deep.equal([
      ...["failed", true],
    ]);
    const { headers: failed } = await ask(`/jobs/${failing}/result`);
    expect(Number(failed.get("x-browser-ms-used"))).to.be.above(0);
  });

  it("answers a failed job with the refusal of the call", async () => {
    const json = { url: "http://127.0.0.1/" };
    const id = await start("screenshot", { ...json, webhook: webhook() });
    expect(await ended(id)).to.include({ status: "failed" });
    const [now, later] = [await ask("/screenshot", "POST", json), await ask(`/jobs/${id}/result`)];
    expect([later.status, later.body]).to.deep.equal([now.status, now.body]);
    expect(later.status).to.equal(422);
    expect(await eventOf(id)).to.deep.include({ type: "job.failed" });
  });

  it("stores no credentials of a request in readable form, and sends them to the page", async () => {
    const planted = ["cookie", "password", "header", "script"].map((name) => `planted-${name}`);
    const received = Promise.withResolvers<IncomingHttpHeaders>();
    const url = site.page("/credentials", (request) => received.resolve(request.headers));
    const id = await start("content", {
      url,
      cookies: [{ name: "session", value: planted[0], url }],
      authenticate: { username: "user", password: planted[1] },
      setExtraHTTPHeaders: { "X-Opens": planted[2] },
      addScriptTag: [{ content: `"${planted[3]}"` }],
      gotoOptions: { timeout: 60_000 },
      webhook: webhook(),
    });
    const { cookie, "x-opens": header } = await received.promise;
    expect([cookie, header]).to.deep.equal([`session=${planted[0]}`, planted[2]]);
    // The page has not loaded yet, so the stored request still exists.
    expect(await stored()).to.have.length.above(0);
    const texts = await storedTexts(bus.bus);
    expect(texts.filter((text) => text.includes(id))).to.have.length.above(0);
    const base64 = (text: string) => Buffer.from(text).toString("base64").slice(2, -4);
    for (const secret of [...planted, ...planted.map(base64), SECRET]) {
      expect(
        texts.filter((text) => text.includes(secret)),
        secret,
      ).to.deep.equal([]);
    }
    expect((await ask(`/jobs/${id}`, "DELETE")).status).to.equal(200);
  });

  it("closes the page of a running job that is cancelled", async () => {
    const url = site.page("/hangs", () => {});
    const id = await start("pdf", {
      ...{ url, gotoOptions: { timeout: 60_000 }, webhook: webhook() },
    });
    await until("the page is open", () => site.paths.includes("/hangs"));
    expect((await ask(`/jobs/${id}`)).body.result.status).to.equal("running");
    expect((await ask(`/jobs/${id}`, "DELETE")).body.result.status).to.equal("cancelled");
    await until("the page is closed", () => pool.contextsInUse === 0);
    expect(await eventOf(id)).to.deep.include({ type: "job.cancelled" });
    expect((await ask(`/jobs/${id}/result`)).status).to.equal(409);
    const { status } = (await ask(`/jobs/${id}`)).body.result;
    expect(status).to.equal("cancelled");
  });

  it("posts no webhook to an address that the guard refuses", async () => {
    const refused = { url: `http://127.0.0.1:${gateway.port}/hook`, secret: SECRET };
    const id = await start("content", { html: "x", webhook: refused });
    expect(await ended(id)).to.include({ status: "completed" });
    const tried = await until("a try", async () => {
      const listed = await bus.actors.call(outgoingWebhook, accountId, "list", { limit: 10 });
      return listed.webhooks.find(({ url }) => url === refused.url)?.lastTry;
    });
    expect(tried).to.not.have.property("status");
    expect(tried.error).to.match(/refuse|not one this service/i);
  });
});
