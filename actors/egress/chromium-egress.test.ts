import { createSocket } from "node:dgram";
import { once } from "node:events";
import { expect } from "chai";
import { type Browser, type BrowserContext, launch, type Page } from "puppeteer-core";
import { WebSocketServer } from "ws";
import {
  type LoopbackServer,
  startHttpServer,
  startTcpServer,
} from "../../scripts/testing/loopback-server.ts";
import { findChromium } from "../../scripts/tools.ts";
import { createAddressPolicy } from "./address-policy.ts";
import { authorizeContext } from "./authorize-context.ts";
import { createEgressGuard, type EgressGuard } from "./egress-guard.ts";
import { EgressProxy } from "./egress-proxy.ts";

/** In these tests a page may connect to 127.0.0.2 but not to 127.0.0.1. */
describe("Chromium behind an EgressProxy", function () {
  this.timeout(90_000);
  let inside: LoopbackServer;
  let open: Awaited<ReturnType<typeof startHttpServer>>;
  let browser: Browser;
  let context: BrowserContext;
  let proxy: EgressProxy;
  let page: Page;
  let guard: EgressGuard;

  before(async () => {
    inside = await startTcpServer(
      (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nsecret"),
      "127.0.0.1",
    );
    open = await startHttpServer((request, response) => {
      response.setHeader("Content-Type", "text/html");
      if (request.url === "/to-inside")
        response.writeHead(302, { Location: `http://127.0.0.1:${inside.port}/` });
      if (request.url === "/private") {
        const shown = request.headers.authorization ?? "";
        if (shown !== `Basic ${btoa("user:site")}`)
          response.writeHead(401, { "WWW-Authenticate": 'Basic realm="site"' });
      }
      response.end("<title>open</title>");
    });
    const sockets = new WebSocketServer({ server: open.server });
    sockets.on("connection", (socket) => socket.send("hello"));
    guard = createEgressGuard({
      policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
      lookup: async (name) => {
        if (name === "open.test") return ["127.0.0.2"];
        if (name === "inside.test" || name === "localhost") return ["127.0.0.1"];
        throw Object.assign(new Error("unknown"), { code: "ENOTFOUND" });
      },
    });
    browser = await launch({
      executablePath: findChromium(),
      headless: "shell",
      timeout: 80_000,
      args: [
        // Chromium's sandbox does not run as root. Disabling it is safe, because the test serves the page itself.
        ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        "--disable-gpu",
        "--proxy-server=http://127.0.0.1:9",
        "--proxy-bypass-list=<-loopback>",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
      ],
    });
  });

  after(async () => {
    await browser.close();
    await Promise.all([inside.close(), open.close()]);
  });

  beforeEach(async () => {
    proxy = await EgressProxy.open({ guard });
    context = await browser.createBrowserContext({
      proxyServer: proxy.url,
      proxyBypassList: ["<-loopback>"],
    });
    page = await context.newPage();
    await authorizeContext(page, proxy);
  });

  afterEach(async () => {
    await context.close();
    await proxy.close();
    expect(inside.accepted()).to.equal(0);
  });

  it("authorizeContext() leaves a blank page, and no trace in the counters", () => {
    expect(page.url()).to.equal("about:blank");
    expect([proxy.bytes, proxy.failures]).to.deep.equal([{ received: 0, sent: 0 }, []]);
  });

  it("reaches allowed hosts, by name and through a redirect", async () => {
    const response = await page.goto(`http://open.test:${open.port}/`);
    expect([response?.status(), await page.title()]).to.deep.equal([200, "open"]);
    expect(proxy.bytes.received).to.be.greaterThan(0);
    expect(proxy.failureOf(`http://open.test:${open.port}/`)).to.equal(undefined);
  });

  it("leaves page.authenticate for the site's own authentication", async () => {
    await page.authenticate({ username: "user", password: "site" });
    const response = await page.goto(`http://open.test:${open.port}/private`);
    expect(response?.status()).to.equal(200);
  });

  for (const host of [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "inside.test",
    "2130706433",
    "169.254.169.254",
    "[fd00:ec2::254]",
    "10.0.0.1",
  ]) {
    it(`cannot load http://${host} and https://${host} as documents`, async () => {
      const response = await page.goto(`http://${host}:${inside.port}/`);
      expect(response?.status()).to.equal(403);
      expect(response?.headers()["x-trunkline-egress"]).to.equal("refused");
      const address = `https://${host}:${inside.port}/`;
      expect(await page.goto(address).catch(String)).to.include(
        "net::ERR_TUNNEL_CONNECTION_FAILED",
      );
      expect(proxy.failureOf(address)).to.include({ code: "address_refused" });
    });
  }

  it("cannot follow a redirect to an internal address", async () => {
    const response = await page.goto(`http://open.test:${open.port}/to-inside`);
    expect(response?.status()).to.equal(403);
    expect(response?.headers()["x-trunkline-egress"]).to.equal("refused");
    expect(proxy.failureOf(response?.url() ?? "")).to.include({ code: "address_refused" });
  });

  it("distinguishes an unreachable document from a refused one", async () => {
    const response = await page.goto("http://unknown.test/");
    expect(response?.status()).to.equal(502);
    expect(response?.headers()["x-trunkline-egress"]).to.equal("name_not_resolved");
    expect(await page.goto("https://unknown.test/").catch(String)).to.include(
      "ERR_TUNNEL_CONNECTION_FAILED",
    );
    expect(proxy.failureOf("https://unknown.test/")).to.include({ code: "name_not_resolved" });
  });

  it("can open a WebSocket to an allowed host, and none to an internal one", async () => {
    await page.goto(`http://open.test:${open.port}/`);
    const attempt = (url: string) =>
      page.evaluate(`new Promise((resolve) => {
        const socket = new WebSocket(${JSON.stringify(url)});
        socket.onmessage = (event) => resolve(event.data);
        socket.onerror = () => resolve("failed");
      })`);
    expect(await attempt(`ws://open.test:${open.port}/`)).to.equal("hello");
    for (const url of [
      `ws://127.0.0.1:${inside.port}/`,
      `wss://127.0.0.1:${inside.port}/`,
      "ws://169.254.169.254/",
    ]) {
      expect(await attempt(url), url).to.equal("failed");
      expect(proxy.failureOf(url), url).to.include({ code: "address_refused" });
    }
  });

  it("cannot reach internal hosts by fetch, image, frame, style, script, preconnect or beacon", async () => {
    await page.goto(`http://open.test:${open.port}/`);
    const inner = `http://127.0.0.1:${inside.port}/`;
    const body = await page.evaluate(`(async (address) => {
      const settled = (tag, property) =>
        new Promise((resolve) => {
          const node = document.createElement(tag);
          node.onload = node.onerror = resolve;
          Object.assign(node, { [property]: address, rel: "stylesheet" });
          document.body.append(node);
        });
      for (const rel of ["preconnect", "dns-prefetch", "prefetch"]) {
        document.head.append(Object.assign(document.createElement("link"), { rel, href: address }));
      }
      navigator.sendBeacon(address, "x");
      await Promise.all([
        settled("img", "src"), settled("iframe", "src"), settled("link", "href"), settled("script", "src"),
      ]);
      return fetch(address, { mode: "no-cors" }).then((response) => response.text(), () => "failed");
    })(${JSON.stringify(inner)})`);
    expect(body).not.to.include("secret");
    expect(proxy.failureOf(inner)).to.include({ code: "address_refused" });
  });

  it("sends no datagram and opens no connection by WebRTC or WebTransport", async () => {
    const datagrams = createSocket("udp4");
    let received = 0;
    datagrams.on("message", () => {
      received += 1;
    });
    datagrams.bind(0, "127.0.0.1");
    await once(datagrams, "listening");
    // WebTransport exists only in secure contexts; a page on a loopback address is one.
    await page.goto(`http://127.0.0.2:${open.port}/`);
    const { port } = datagrams.address();
    const transport = await page.evaluate(`(async () => {
      const peer = new RTCPeerConnection({ iceServers: [
        { urls: "stun:127.0.0.1:${port}" },
        { urls: ["turn:127.0.0.1:${inside.port}?transport=tcp", "turns:127.0.0.1:${inside.port}"], username: "x", credential: "x" },
      ] });
      peer.createDataChannel("x");
      await peer.setLocalDescription(await peer.createOffer());
      while (peer.iceGatheringState !== "complete") {
        await new Promise((resolve) => {
          peer.addEventListener("icegatheringstatechange", resolve, { once: true });
        });
      }
      const transport = new WebTransport("https://127.0.0.1:${port}/");
      return transport.ready.then(() => "open", () => "failed");
    })()`);
    datagrams.close();
    // The TCP connections of WebRTC go through the proxy as well.
    expect(proxy.failureOf(`https://127.0.0.1:${inside.port}`)).to.include({
      code: "address_refused",
    });
    expect([transport, received]).to.deep.equal(["failed", 0]);
  });

  it("gets nothing through a proxy without its credentials", async () => {
    const stranger = await browser.createBrowserContext({
      proxyServer: proxy.url,
      proxyBypassList: ["<-loopback>"],
    });
    const strange = await stranger.newPage();
    const response = await strange.goto(`http://open.test:${open.port}/`).catch(String);
    expect(typeof response === "string" ? 407 : response?.status()).to.equal(407);
    expect(proxy.bytes).to.deep.equal({ received: 0, sent: 0 });
    await stranger.close();
  });
});
