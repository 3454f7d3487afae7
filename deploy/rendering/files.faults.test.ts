/**
 * Kills processes while they serve a request with files. Another worker must get the files too, and a killed gateway
 * must leave nothing behind.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PDFDocument } from "@cantoo/pdf-lib";
import { expect } from "chai";
import { startNats, type TestNatsServer } from "../../scripts/testing/nats-server.ts";
import { type Credentials, RoleProcess } from "../../scripts/testing/role-process.ts";
import { until } from "../../scripts/testing/until.ts";

/** Larger than one message of the bus, so that the worker fetches the files from the gateway. */
const LARGE = "x".repeat(3_000_000);

/** Time in which a browser starts or ends, on a busy machine too. */
const START_MS_MAX = 120_000;

describe("files in progress on several machines", function () {
  this.timeout(900_000);
  let folder: string;
  let nats: TestNatsServer;
  let actors: RoleProcess;
  let gateway: RoleProcess;
  let browser: RoleProcess;
  const others: RoleProcess[] = [];
  let credentials: Credentials;

  const start = (name: string, roles: string) =>
    RoleProcess.start(name, folder, {
      TRUNKLINE_ROLES: roles,
      TRUNKLINE_NATS_URL: nats.url,
      TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
    });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-files-"));
    // If the test runs as root, browsers run as another user. Their profiles are in this folder, so that user must be
    // able to read it.
    await chmod(folder, 0o755);
    nats = await startNats();
    actors = await start("actors", "actors");
    gateway = await start("gateway-0", "gateway");
    browser = await start("browser-0", "browser");
    await Promise.all([actors, gateway, browser].map((instance) => instance.ready()));
    credentials = await gateway.credentials();
  });
  afterEach(async () => {
    const all = [actors, gateway, browser, ...others.splice(0)];
    await Promise.all(all.map((instance) => instance[Symbol.asyncDispose]()));
    await nats.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  async function another(name: string, roles: string): Promise<RoleProcess> {
    const instance = await start(name, roles);
    others.push(instance);
    await instance.ready();
    return instance;
  }

  /** Prints two documents. The second one waits for 5 s, which leaves time to kill a process. */
  async function print({ url }: RoleProcess) {
    const form = new FormData();
    const waiting = {
      function: "document.title !== 'slow' || performance.now() > 5000",
      timeout: 60_000,
    };
    const sources = [{ file: "a.html" }, { file: "b.html" }];
    form.append("options", JSON.stringify({ sources, waitForFunction: waiting }));
    form.append("files", new Blob([`<title>first</title><script src=x.js></script>`]), "a.html");
    form.append("files", new Blob(["<title>slow</title>"]), "b.html");
    form.append("files", new Blob([`document.title += ${JSON.stringify(LARGE)}.length`]), "x.js");
    const response = await fetch(
      `${url}/v4/accounts/${credentials.account_id}/browser-rendering/pdf?cacheTTL=0`,
      { method: "POST", headers: { Authorization: `Bearer ${credentials.api_token}` }, body: form },
    );
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(response.status, bytes.toString("utf8", 0, 500)).to.equal(200);
    const document = await PDFDocument.load(bytes);
    return `${document.getTitle()} ${document.getPageCount()}`;
  }
  async function inUse(worker = browser): Promise<number> {
    const metrics = await worker.metrics().catch(() => "");
    return Number(/^trunkline_browser_contexts_in_use (\d+)$/m.exec(metrics)?.[1] ?? 0);
  }

  it("move to another worker when their worker is killed", async () => {
    // Both workers run before the request: without a worker for WORKER_ABSENT_MS, the request would be refused.
    const workers = [browser, await another("browser-1", "browser")];
    const printed = print(gateway);
    const isAtThem = async () => {
      const counts = await Promise.all(workers.map((worker) => inUse(worker)));
      return workers[counts.findIndex((count) => count > 0)];
    };
    (await until("a browser is at them", isAtThem, START_MS_MAX)).signal("SIGKILL");
    expect(await printed).to.equal(`first${LARGE.length} 2`);
  });

  it("are aborted when their gateway is killed, and the next request succeeds", async () => {
    const lost = print(gateway).catch((error: Error) => error);
    await until("a browser is at them", async () => (await inUse()) > 0, START_MS_MAX);
    gateway.signal("SIGKILL");
    expect(await lost).to.be.an("error");
    await until("the browser is free again", async () => (await inUse()) === 0, START_MS_MAX);
    const next = await another("gateway-1", "gateway");
    expect(await print(next)).to.equal(`first${LARGE.length} 2`);
  });
});
