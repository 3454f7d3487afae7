import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";
import { HOSTILE_TEXTS } from "./testing/hostile-texts.ts";

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const HOSTILE_TITLE = HOSTILE_TEXTS.join(" ");
const HOSTILE_PAGE = `<!doctype html><title>${escaped(HOSTILE_TITLE)}</title>
<base href="https://evil.example/">
<link rel="stylesheet" href="https://evil.example/x.css"><style>@import "https://evil.example/y.css";</style>
<body onload="window.hacked=1;parent.hacked=1" style="background:url(https://evil.example/b)">
<main><h1>Traps</h1><p>Read this text, which is long enough to be the content of a page.</p>
<img src="https://evil.example/i.png" onerror="parent.hacked=1" alt="a picture">
<script>parent.hacked=1</script><iframe src="https://evil.example/f"></iframe>
<form action="https://evil.example/"><input name=a><button>b</button></form>
<a href="javascript:parent.hacked=1">a link</a><svg onload="parent.hacked=1"><script>parent.hacked=1</script></svg>
${"<div>".repeat(5_000)}deep${"</div>".repeat(5_000)}
${HOSTILE_TEXTS.map((text) => `<p>${escaped(text)}</p><pre>${escaped(text)}</pre>`).join("")}${HOSTILE_TEXTS.join("")}
</main>`;

describe("crawls in the console", function () {
  this.timeout(900_000);
  let world: ConsoleWorld;
  let site: Server;
  let origin: string;
  /**
   * Until this promise resolves, the site does not answer requests for the slow and the hostile page. So the crawl
   * keeps running, and its picture for the documents has no hostile title.
   */
  const released = Promise.withResolvers<void>();
  before(async () => {
    site = createServer((request, response) => {
      const send = (type: string, text: string, status = 200) =>
        response.writeHead(status, { "content-type": type }).end(text);
      const path = request.url ?? "";
      if (path === "/robots.txt") send("text/plain", "User-agent: *\nDisallow: /private");
      else if (path === "/") send("text/html", startPage());
      else if (path === "/traps") released.promise.then(() => send("text/html", HOSTILE_PAGE));
      else if (path === "/slow")
        released.promise.then(() => send("text/html", "<title>Slow</title><p>At last."));
      // "/held" is never answered.
      else if (path !== "/held") send("text/plain", "nothing", 404);
    }).listen(0, "127.0.0.1");
    world = await ConsoleWorld.start({ TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8" });
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  });
  after(async () => {
    site?.closeAllConnections();
    site?.close();
    await world?.[Symbol.asyncDispose]();
  });
  afterEach(() => world.checkFaults());

  it("starts a crawl, follows it live, and shows its records with their reasons", async () => {
    await world.open("crawls", "Crawls");
    await world.says("There is no crawl yet");
    await world.audit("crawls-empty");
    await world.follow("New crawl");
    await world.fill("Address", `${origin}/`);
    await world.fill("Pages at most", "0");
    await world.press("Start the crawl");
    await world.says("/limit");
    await world.fill("Pages at most", "20");
    await world.audit("crawl-new");
    await world.press("Start the crawl");
    await world.heading("Crawl");
    await world.says("running");
    await world.page.waitForFunction(
      `[...document.querySelectorAll(".latest-pages")].some(({ innerText }) => innerText.includes("${origin}"))`,
    );
    await world.says("Harbour news");
    await world.audit("crawl-running");
    released.resolve();
    await world.says("5 of 5 pages");
    await world.page.waitForFunction(
      `[...document.querySelectorAll(".badge")].every(({ innerText }) => innerText !== "running")`,
    );
    await world.says("robots.txt");
    await world.says("HTTP 404");
    await world.audit("crawl");
  });

  it("shows a page as Markdown, as a page and as source", async () => {
    await world.press(`Preview ${origin}/`);
    await world.page.waitForSelector(".preview .markup");
    await world.says("Harbour news");
    await world.audit("crawl-markdown");
    await world.press("HTML source");
    await world.page.waitForSelector(".preview .token.name");
    await world.press("Page");
    expect(await frameText()).to.contain("Ships come in.");
    await world.audit("crawl-page");
  });

  it("shows hostile pages without running or loading anything of them", async () => {
    await world.press(`Close ${origin}/`);
    await world.says(HOSTILE_TEXTS[0] ?? "");
    await world.press(`Preview ${origin}/traps`);
    await world.says("Read this text");
    await world.press("Page");
    const text = await frameText();
    expect(text).to.contain("Read this text").and.to.contain("deep");
    expect(text).to.contain(HOSTILE_TEXTS[1]);
    const frame = await world.page.$eval("iframe", (element) => element.getAttribute("sandbox"));
    expect(frame).to.equal("");
    await world.press("HTML source");
    await world.says("onerror");
    await world.press("Markdown source");
    await world.says("Traps");
    expect(await world.isHacked()).to.equal(false);
  });

  it("filters records by status, and lists crawls by theirs", async () => {
    const states = (label: string) => `aria/${label}[role="combobox"]`;
    await (await world.page.waitForSelector(states("State")))?.select("disallowed");
    await world.page.waitForFunction(`document.querySelectorAll(".records > li").length === 1`);
    await world.says("/private");
    await (await world.page.waitForSelector(states("State")))?.select("cancelled");
    await world.says("No page is cancelled");
    await world.open("crawls", "Crawls");
    await world.says("5 of 5");
    await world.audit("crawls");
    await (await world.page.waitForSelector(states("State")))?.select("errored");
    await world.says("No crawl has this state");
    await world.page.reload();
    await world.says("No crawl has this state");
  });

  it("says why a crawl cannot be followed, and cancels it", async () => {
    const json = { url: `${origin}/held`, render: false, maxAge: 0 };
    const { body } = await world.platform.rest("POST", "/browser-rendering/crawl", json);
    {
      await using _refused = await world.intercept(
        (request) => request.url().endsWith("/events"),
        (request) =>
          void request.respond({
            status: 429,
            contentType: "application/json",
            body: JSON.stringify({ errors: [{ code: 10_429, message: "Too many requests" }] }),
          }),
      );
      await world.open(`crawls/${body.result}`, "Crawl");
      // The page does not repeat a refused request automatically.
      await world.says("the limit of requests counts for the whole account");
    }
    const asked = world.page.waitForRequest((request) => request.url().endsWith("/events"));
    await world.press("Try again");
    await asked;
    await world.page.waitForFunction('!document.querySelector("[role=alert]")');
    await world.openDialog("Cancel the crawl");
    await world.confirm("Cancel the crawl");
    await world.says("cancelled");
  });

  const frameText = async () => {
    const element = await world.page.waitForSelector("iframe");
    const frame = await element?.contentFrame();
    await frame?.waitForSelector("body");
    return String(await frame?.$eval("body", (body) => (body as HTMLElement).innerText));
  };
});

interface HTMLElement {
  innerText: string;
}

const startPage = () => `<!doctype html><title>Harbour news</title><main><h1>Harbour news</h1>
<p>Ships come in. Read about <a href="/traps">traps</a>, <a href="/slow">slow</a> things,
<a href="/private/x">private</a> ones and <a href="/gone">what is gone</a>.</p>
<h2>Tides</h2><table><tr><th>Port</th><th>High</th></tr><tr><td>Bergen</td><td>1.2 m</td></tr></table>
<pre><code class="language-js">const tide = 1;</code></pre></main>`;
