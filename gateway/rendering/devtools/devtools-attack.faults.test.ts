import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { DEVTOOLS_MESSAGE_BYTES_MAX } from "../../../schemas/rendering/devtools-limits.ts";
import { DevtoolsPlatform } from "../../../scripts/testing/devtools-platform.ts";
import { RawCdp } from "../../../scripts/testing/raw-cdp.ts";

const SECRET = "secret-of-this-machine";

describe("DevTools session against raw commands", function () {
  this.timeout(300_000);
  let platform: DevtoolsPlatform;
  let folder: string;
  let file: string;
  let id: string;
  let cdp: RawCdp;
  /** A service of this machine that no page may reach. */
  let service: Server;
  let hits: string[];
  let port: number;

  before(async () => {
    platform = await DevtoolsPlatform.start();
    folder = join(tmpdir(), `trunkline-attack-${process.pid}`);
    await mkdir(folder, { mode: 0o777 });
    file = join(folder, "secret.html");
    await writeFile(file, `<p>${SECRET}</p>`, { mode: 0o644 });
    service = createServer((request, response) => {
      hits.push(request.url ?? "");
      response.setHeader("access-control-allow-origin", "*").end(SECRET);
    }).listen(0, "127.0.0.1");
    await once(service, "listening");
    ({ port } = service.address() as AddressInfo);
  });
  after(async () => {
    await platform[Symbol.asyncDispose]();
    service.close();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    hits = [];
    id = await platform.begin();
    cdp = await RawCdp.open(platform.socket(`/browser/${id}`));
  });
  afterEach(async () => {
    cdp.socket.close();
    await platform.ask("DELETE", `/browser/${id}`);
  });

  const refused = async (method: string, params: object = {}, sessionId?: string) => {
    const { error } = await cdp.send(method, params, sessionId);
    expect(error?.message, `${method} ${JSON.stringify(params)}`).to.match(/^Cannot send /);
  };
  const textOf = (sessionId: string) =>
    cdp.evaluate("document.documentElement.outerHTML", sessionId);

  it("opens no page of the machine or the browser", async () => {
    const { sessionId } = await cdp.openPage();
    const addresses = [
      ...[`file://${file}`, `FILE:${file}`, ` fi\nle://${file}`, `view-source:file://${file}`],
      ...[
        "chrome://version",
        "devtools://devtools/bundled/inspector.html",
        "filesystem:http://a/b",
      ],
      ...["chrome-untrusted://terminal", "javascript:1", "ftp://a/", "about\u0000:blank", "x"],
    ];
    for (const url of addresses) {
      await refused("Page.navigate", { url }, sessionId);
      await refused("Target.createTarget", { url });
      const { status, body } = await platform.ask(
        "PUT",
        `/browser/${id}/json/new?url=${encodeURIComponent(url)}`,
      );
      expect([status, body.errors?.[0]?.code], url).to.deep.equal([400, 1_001]);
    }
    for (const url of [7, null, {}, [`file://${file}`]]) {
      await refused("Page.navigate", { url }, sessionId);
    }
  });

  it("reads no file by a page's script, an intercepted request or a redirect", async () => {
    const { sessionId } = await cdp.openPage();
    await cdp.show(sessionId);
    const { frameTree } = await cdp.call("Page.getFrameTree", {}, sessionId);
    const world = { frameId: frameTree.frame.id, grantUniveralAccess: true };
    const { executionContextId: contextId } = await cdp.call(
      "Page.createIsolatedWorld",
      world,
      sessionId,
    );
    const url = `file://${file}`;
    const tries = `(async () => {
      const found = [];
      const frame = document.createElement("iframe");
      frame.src = "${url}";
      const loaded = new Promise((done) => { frame.onload = frame.onerror = done; });
      document.body.append(frame);
      await Promise.race([loaded, new Promise((done) => setTimeout(done, 2000))]);
      try { found.push(frame.contentDocument?.documentElement.outerHTML ?? ""); } catch (error) { found.push("" + error); }
      found.push(await fetch("${url}").then((answer) => answer.text(), String));
      found.push(await new Promise((done) => {
        const request = new XMLHttpRequest();
        request.onloadend = () => done(request.responseText);
        request.onerror = () => done("failed");
        try { request.open("GET", "${url}"); request.send(); } catch (error) { done("" + error); }
      }));
      open("${url}");
      return found.join();
    })()`;
    expect(await cdp.evaluate(tries, sessionId)).not.to.contain(SECRET);
    expect(await cdp.evaluate(tries, sessionId, { contextId })).not.to.contain(SECRET);
    await refused(
      "Network.loadNetworkResource",
      { url, frameId: frameTree.frame.id, options: {} },
      sessionId,
    );
    await refused("Fetch.continueRequest", { requestId: "x", url }, sessionId);
    const { targetInfos } = await cdp.call("Target.getTargets");
    expect(JSON.stringify(targetInfos)).not.to.contain("file:");
    expect(await redirected(cdp, sessionId, url)).not.to.contain(SECRET);
    expect(await textOf(sessionId)).not.to.contain(SECRET);
  });

  it("gives no file to a page, and stores none of it", async () => {
    const { sessionId } = await cdp.openPage();
    await cdp.show(sessionId, { html: "<input type=file ondragover='event.preventDefault()'>" });
    // By an object: ids of nodes end whenever the browser updates the document.
    const expression = "document.querySelector('input')";
    const { result } = await cdp.call("Runtime.evaluate", { expression }, sessionId);
    const { objectId } = result;
    await refused("DOM.setFileInputFiles", { files: [file], objectId }, sessionId);
    const at = { x: 20, y: 20, data: { items: [], files: [file], dragOperationsMask: 1 } };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
      await refused("Input.dispatchDragEvent", { type, ...at }, sessionId);
    }
    const downloads = join(folder, "downloads");
    await mkdir(downloads, { mode: 0o777 });
    const allowed = { behavior: "allow", downloadPath: downloads, eventsEnabled: true };
    await cdp.call("Browser.setDownloadBehavior", allowed);
    await cdp.call("Page.setDownloadBehavior", allowed, sessionId);
    await cdp.call("Page.enable", {}, sessionId);
    await cdp.evaluate(
      `{ const link = document.createElement("a"); link.href = "data:application/zip;base64,AAAA"; link.download = "a.zip"; document.body.append(link); link.click(); }`,
      sessionId,
    );
    // Waits until the browser reports that it cancelled the download. After that no file can be created.
    const canceled = () =>
      cdp.events.some(
        ({ method, params }) => method.endsWith(".downloadProgress") && params.state === "canceled",
      );
    while (!canceled()) await cdp.call("Browser.getVersion");
    expect(await readdir(downloads)).to.deep.equal([]);
  });

  it("reaches no address of the machine's network", async () => {
    const udp = createSocket("udp4").bind(0, "127.0.0.1");
    await once(udp, "listening");
    let packets = 0;
    udp.on("message", () => {
      packets += 1;
    });
    const { browserContextId } = await cdp.call("Target.createBrowserContext");
    for (const context of [{}, { browserContextId }]) {
      const { sessionId } = await cdp.openPage(context);
      await cdp.show(sessionId);
      const hosts = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433"];
      for (const host of hosts) {
        const url = `http://${host}:${port}/`;
        await cdp.send("Page.navigate", { url }, (await cdp.openPage(context)).sessionId);
        await cdp.evaluate(
          `Promise.allSettled([
            fetch("${url}fetch", { mode: "no-cors" }),
            new Promise((done) => { const socket = new WebSocket("${url.replace("http", "ws")}socket"); socket.onerror = socket.onopen = done; }),
            new Promise((done) => { const image = new Image(); image.onload = image.onerror = done; image.src = "${url}image"; }),
            new Promise((done) => { const worker = new Worker(URL.createObjectURL(new Blob(['fetch("${url}worker", { mode: "no-cors" }).finally(() => postMessage(1))']))); worker.onmessage = worker.onerror = done; }),
            navigator.sendBeacon("${url}beacon"),
          ])`,
          sessionId,
        );
      }
      const { frameTree } = await cdp.call("Page.getFrameTree", {}, sessionId);
      const loading = { frameId: frameTree.frame.id, url: `http://127.0.0.1:${port}/load` };
      const options = { disableCache: true, includeCredentials: false };
      await cdp.send("Network.loadNetworkResource", { ...loading, options }, sessionId);
      await continued(cdp, sessionId, `http://127.0.0.1:${port}/continued`);
      await cdp.evaluate(
        `new Promise((done) => {
          const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${udp.address().port}" }] });
          peer.createDataChannel("x");
          peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && done();
          peer.createOffer().then((offer) => peer.setLocalDescription(offer));
          setTimeout(done, 3000);
        }).catch(() => {})`,
        sessionId,
      );
    }
    udp.close();
    expect([hits, packets]).to.deep.equal([[], 0]);
  });

  it("sets no proxy, and opens no way past the filter", async () => {
    for (const params of [
      { proxyServer: "direct://" },
      { proxyServer: `http://127.0.0.1:${port}` },
      { proxyBypassList: "*" },
      { originsWithUniversalNetworkAccess: ["https://public.example"] },
    ]) {
      await refused("Target.createBrowserContext", params);
    }
    const { targetId, sessionId } = await cdp.openPage();
    for (const session of [undefined, sessionId]) {
      await refused("Target.exposeDevToolsProtocol", { targetId, bindingName: "cdp" }, session);
      await refused("Target.sendMessageToTarget", { message: "{}", targetId }, session);
      await refused("Target.attachToTarget", { targetId }, session);
      await refused("Target.attachToTarget", { targetId, flatten: "true" }, session);
      const attaching = { autoAttach: true, waitForDebuggerOnStart: false };
      await refused("Target.setAutoAttach", attaching, session);
      await refused(
        "Target.setRemoteLocations",
        { locations: [{ host: "127.0.0.1", port }] },
        session,
      );
    }
    for (const method of [
      ...["Browser.crash", "Browser.crashGpuProcess", "Browser.getBrowserCommandLine"],
      ...["Browser.executeBrowserCommand", "SystemInfo.getInfo", "SystemInfo.getProcessInfo"],
      ...["Tethering.bind", "Extensions.loadUnpacked", "PWA.install", "Target.openDevTools"],
      ...["FileSystem.getDirectory", "DeviceAccess.enable", "Storage.overrideQuotaForOrigin"],
      ...["Network.setRequestInterception", "NoSuch.command", "toString", "__proto__", "", "."],
    ]) {
      await refused(method);
      await refused(method, {}, sessionId);
    }
    await refused("Tracing.start", { perfettoConfig: "AAAA" });
  });

  it("sees no other session, and takes no id of one", async () => {
    const other = await platform.begin();
    const theirs = await RawCdp.open(platform.socket(`/browser/${other}`));
    const { targetId, sessionId } = await theirs.openPage();
    const { targetInfos } = await cdp.call("Target.getTargets");
    expect(JSON.stringify(targetInfos)).not.to.contain(targetId);
    expect((await cdp.send("Runtime.evaluate", { expression: "1" }, sessionId)).error).to.include({
      code: -32_001,
    });
    expect(
      (await cdp.send("Target.attachToTarget", { targetId, flatten: true })).error,
    ).not.to.equal(undefined);
    theirs.socket.close();
    await platform.ask("DELETE", `/browser/${other}`);
  });

  it("does not let a client of the same session use the ids of another", async () => {
    const second = await RawCdp.open(platform.socket(`/browser/${id}`));
    const { sessionId } = await second.openPage();
    const { error } = await cdp.send("Runtime.evaluate", { expression: "1" }, sessionId);
    expect(error?.message).to.equal("Session with given id not found.");
    second.socket.close();
  });

  it("reads a message as the browser will, and answers what is none", async () => {
    const twice = await cdp.sendText(
      `{"id":900,"method":"Browser.getVersion","method":"Browser.crash"}`,
      900,
    );
    expect(twice.error?.message).to.match(/^Cannot send Browser\.crash/);
    for (const text of [
      "",
      "x",
      "[]",
      "null",
      '{"id":1.5,"method":"Browser.getVersion"}',
      '{"id":-1}',
    ]) {
      expect((await cdp.sendText(text)).error?.code, text).to.equal(-32_600);
    }
    const deep = `{"id":901,"method":"Runtime.evaluate","params":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`;
    cdp.socket.send(deep);
    const nul = await cdp.send("Runtime.evaluate\0", {});
    expect(nul.error).not.to.equal(undefined);
  });

  it("takes a message of DEVTOOLS_MESSAGE_BYTES_MAX, and ends the client that sends a larger one", async () => {
    const command = (bytes: number) => {
      const frame = '{"id":902,"method":"Browser.getVersion","params":{"a":""}}';
      return frame.replace('""', `"${"x".repeat(bytes - frame.length)}"`);
    };
    await cdp.sendText(command(DEVTOOLS_MESSAGE_BYTES_MAX), 902);
    cdp.socket.send(command(DEVTOOLS_MESSAGE_BYTES_MAX + 1));
    const [code] = await once(cdp.socket, "close");
    expect(code).to.equal(1_009);
  });

  it("runs the browser as a user without rights", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const owners = await ownersOf(platform.instance.pid);
    expect([...owners]).to.deep.equal([65_534]);
  });
});

/** Answers an intercepted request with a redirect to `to`, and returns the HTML of the page afterwards. */
async function redirected(cdp: RawCdp, sessionId: string, to: string): Promise<string> {
  cdp.onEvent = ({ method, params: { requestId } }) => {
    if (method !== "Fetch.requestPaused") return;
    const responseHeaders = [{ name: "location", value: to }];
    void cdp.send(
      "Fetch.fulfillRequest",
      { requestId, responseCode: 302, responseHeaders },
      sessionId,
    );
  };
  await cdp.call("Fetch.enable", {}, sessionId);
  await cdp.send("Page.navigate", { url: "https://public.example/redirect" }, sessionId);
  await cdp.call("Fetch.disable", {}, sessionId);
  return await cdp.evaluate("document.documentElement.outerHTML", sessionId);
}

/** Sends an intercepted request to another address. */
async function continued(cdp: RawCdp, sessionId: string, to: string): Promise<void> {
  cdp.onEvent = ({ method, params: { requestId } }) => {
    if (method === "Fetch.requestPaused")
      void cdp.send("Fetch.continueRequest", { requestId, url: to }, sessionId);
  };
  await cdp.call("Fetch.enable", {}, sessionId);
  await cdp.send("Page.navigate", { url: "https://public.example/continue" }, sessionId);
  await cdp.call("Fetch.disable", {}, sessionId);
}

/** Returns the users of the browser processes that the process `parent` started. */
async function ownersOf(parent: number): Promise<Set<number>> {
  const owners = new Set<number>();
  for (const name of (await readdir("/proc")).filter((one) => /^\d+$/.test(one))) {
    const status = await readFile(`/proc/${name}/status`, "utf8").catch(() => "");
    const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    const ofParent = new RegExp(`^PPid:\\t${parent}$`, "m").test(status);
    if (!ofParent || !line.includes("--remote-debugging-pipe")) continue;
    owners.add(Number(/^Uid:\t(\d+)/m.exec(status)?.[1]));
  }
  return owners;
}
