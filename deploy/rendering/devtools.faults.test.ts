/**
 * Kills processes while they serve DevTools sessions. Clients must then see the correct state, and sessions that can
 * continue must continue.
 */
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { WebSocket } from "ws";
import { startNats, type TestNatsServer } from "../../scripts/testing/nats-server.ts";
import { childrenOf, isRunning } from "../../scripts/testing/process-children.ts";
import { RawCdp } from "../../scripts/testing/raw-cdp.ts";
import { type Credentials, RoleProcess } from "../../scripts/testing/role-process.ts";
import { until } from "../../scripts/testing/until.ts";

/** Time in which sessions end, and answers come again, on a busy machine too. */
const END_MS_MAX = 120_000;

describe("DevTools sessions on several machines", function () {
  this.timeout(900_000);
  let folder: string;
  let nats: TestNatsServer;
  let first: RoleProcess;
  let second: RoleProcess;
  let actors: RoleProcess;
  let browser: RoleProcess;
  let credentials: Credentials;

  const start = (name: string, roles: string) =>
    RoleProcess.start(name, folder, {
      TRUNKLINE_ROLES: roles,
      TRUNKLINE_NATS_URL: nats.url,
      TRUNKLINE_BROWSER_SECONDS_PER_DAY: "0",
      // No limit on requests, because the tests poll whether a session has ended.
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
    });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-devtools-"));
    // If the test runs as root, browsers run as another user. Their profiles are in this folder, so that user must be
    // able to read it.
    await chmod(folder, 0o755);
    nats = await startNats();
    [first, actors, browser] = await Promise.all([
      start("gateway-0", "gateway"),
      start("actors", "actors"),
      start("browser-0", "browser"),
    ]);
    await Promise.all([first, actors, browser].map((instance) => instance.ready()));
    credentials = await first.credentials();
    second = await start("gateway-1", "gateway");
    await second.ready();
  });

  after(async () => {
    const all = [first, second, actors, browser];
    await Promise.all(all.map((instance) => instance[Symbol.asyncDispose]()));
    await nats.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  const headers = () => ({ Authorization: `Bearer ${credentials.api_token}` });
  const urlOf = (gateway: RoleProcess) =>
    `${gateway.url}/v4/accounts/${credentials.account_id}/browser-rendering/devtools`;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the answer of whatever route it asked.
  async function ask(gateway: RoleProcess, method: string, path: string): Promise<any> {
    const response = await fetch(urlOf(gateway) + path, { method, headers: headers() });
    return await response.json();
  }
  async function begin(gateway: RoleProcess, keepAliveMs = 600_000): Promise<string> {
    const { sessionId, errors } = await ask(gateway, "POST", `/browser?keep_alive=${keepAliveMs}`);
    if (errors) throw new Error(JSON.stringify(errors));
    return sessionId;
  }
  function connect(gateway: RoleProcess, id: string): Promise<RawCdp> {
    const url = `${urlOf(gateway).replace(/^http/, "ws")}/browser/${id}`;
    return RawCdp.open(new WebSocket(url, { headers: headers() }));
  }
  const ended = (id: string) => async () => (await ask(second, "GET", `/session/${id}`)).endTime;

  it("any gateway serves any session, with large messages in order", async () => {
    const id = await begin(first);
    const clients = [await connect(first, id), await connect(second, id)];
    for (const cdp of clients) {
      const { sessionId } = await cdp.openPage();
      const lengths = [1, 3_000_000, 10, 600_000, 524_288, 7];
      const texts = lengths.map((length) =>
        cdp.evaluate(`"x".repeat(${length}) + ${length}`, sessionId),
      );
      const answers: string[] = await Promise.all(texts);
      expect(answers.map((text) => text.length - text.replaceAll("x", "").length)).to.deep.equal(
        lengths.map((length) => String(length).length + length - String(length).length),
      );
      const sent = "y".repeat(5_000_000);
      expect(await cdp.evaluate(`"${sent}".length`, sessionId)).to.equal(sent.length);
      cdp.socket.close();
    }
    await ask(first, "DELETE", `/browser/${id}`);
    await until("the session has ended", ended(id), END_MS_MAX);
  });

  it("the bus restarted: the client is cut off, and finds its pages when it comes again", async () => {
    const id = await begin(first);
    const cdp = await connect(first, id);
    const { targetId } = await cdp.openPage();
    const closed = once(cdp.socket, "close");
    await nats.kill();
    void cdp.send("Browser.getVersion");
    expect((await closed)[0]).to.equal(1_011);
    await nats.start();
    await Promise.all([first, actors, browser].map((instance) => instance.ready()));
    const isBack = async () => (await ask(first, "GET", "/session")).length === 1;
    await until("it answers again", isBack, END_MS_MAX);
    const again = await connect(first, id);
    const { targetInfos } = await again.call("Target.getTargets");
    expect(JSON.stringify(targetInfos)).to.contain(targetId);
    again.socket.close();
    await ask(first, "DELETE", `/browser/${id}`);
    await until("the session has ended", ended(id), END_MS_MAX);
  });

  it("a gateway killed: its client finds its pages at another, and a session without one ends", async () => {
    const id = await begin(first);
    // Without a client this session ends after 20 s, which are enough to connect on a slow machine.
    const leaving = await begin(first, 20_000);
    await connect(first, leaving);
    const cdp = await connect(first, id);
    const { targetId } = await cdp.openPage();
    const closed = once(cdp.socket, "close");
    first.signal("SIGKILL");
    await closed;
    const again = await connect(second, id);
    const { targetInfos } = await again.call("Target.getTargets");
    expect(JSON.stringify(targetInfos)).to.contain(targetId);
    await until("the session without a client has ended", ended(leaving), END_MS_MAX);
    expect((await ask(second, "GET", `/session/${leaving}`)).closeReasonText).to.equal(
      "BrowserIdle",
    );
    again.socket.close();
    await ask(second, "DELETE", `/browser/${id}`);
    await until("the other has ended", ended(id), END_MS_MAX);
  });

  it("a worker killed: its sessions have ended with it, and so has every browser", async () => {
    const id = await begin(second);
    const quiet = await begin(second);
    const cdp = await connect(second, id);
    const browsers = childrenOf(browser.pid);
    const closed = once(cdp.socket, "close");
    browser.signal("SIGKILL");
    expect((await closed)[0]).to.equal(1_011);
    for (const session of [id, quiet]) {
      const { closeReasonText } = await ask(second, "GET", `/session/${session}`);
      expect(closeReasonText).to.equal("WorkerLost");
    }
    expect(await ask(second, "GET", "/session")).to.deep.equal([]);
    await until("no browser is left", () => !browsers.some(isRunning), END_MS_MAX);
    const { errors } = await ask(second, "POST", "/browser");
    expect(errors[0].code).to.equal(2_004);
    browser = await start("browser-1", "browser");
    await browser.ready();
    const next = await connect(second, await begin(second));
    expect((await next.call("Browser.getVersion")).product).to.contain("Chrome");
    next.socket.close();
  });
});
