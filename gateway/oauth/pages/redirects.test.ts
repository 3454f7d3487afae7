import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browser, BrowserContext, Page } from "puppeteer-core";
import { startPersonBrowser } from "../../../scripts/testing/person-browser.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type OAuthWorld, oauthWorld, type TestClient } from "../testing/oauth-world.ts";

describe("redirects from our pages in Chromium", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let base: string;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let client: TestClient;
  /** The server of the client's program, and the address to which it redirects people. */
  let app: Server;
  let elsewhere: Server;
  before(async () => {
    world = await oauthWorld();
    [base = ""] = world.urls;
    elsewhere = await serve(() => ({ text: "<h1>welcome</h1>" }));
    app = await serve((path) => {
      if (path.startsWith("/onward")) return { location: `${urlOf(elsewhere)}/welcome` };
      const tell = "opener?.postMessage(location.search, '*')";
      return { text: `<title>app</title><script>${tell}</script>app` };
    });
    const addresses = ["http://127.0.0.1/callback", "http://127.0.0.1/onward"];
    client = await world.makeClient({
      redirect_uris: addresses,
      post_logout_redirect_uris: addresses,
    });
    browser = await startPersonBrowser();
  });
  after(async () => {
    await browser?.close();
    for (const server of [app, elsewhere]) server?.close();
    await world?.stop();
  });
  beforeEach(async () => {
    context = await browser.createBrowserContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  it("follows a callback that redirects to another origin, after consent, sign-in and sign-out", async () => {
    await page.goto(asked("/onward"));
    await signIn(page);
    await until("they are asked", () => page.url().includes("/oauth2/consent"));
    await press(page, "button[value=allow]");
    await isAt(page, `${urlOf(elsewhere)}/welcome`);

    // With existing consent, the sign-in redirects to the client.
    await page.goto(asked("/onward", { prompt: "login" }));
    await signIn(page);
    await isAt(page, `${urlOf(elsewhere)}/welcome`);

    const away = { client_id: client.client_id, post_logout_redirect_uri: onApp("/onward") };
    await page.goto(`${base}/oauth2/logout?${new URLSearchParams(away)}`);
    await press(page, "button[value=yes]");
    await isAt(page, `${urlOf(elsewhere)}/welcome`);
  });

  it("forms of all other pages may be sent to our own origin only", async () => {
    for (const path of ["/login", "/signup"]) {
      const answer = await page.goto(base + path);
      const policy = answer?.headers()["content-security-policy"];
      expect(policy, path).to.contain("form-action 'self'");
    }
  });

  it("a sign-in in a pop-up of the client's page ends at its callback, which can notify that page", async () => {
    await page.goto(onApp("/"));
    await page.evaluate("messages = []; addEventListener('message', (e) => messages.push(e.data))");
    const url = asked("/callback", { prompt: "consent" });
    const opened = browser.waitForTarget((target) => target.opener() === page.target());
    await page.evaluate(`child = open(${JSON.stringify(url)}, "p", "popup"); null`);
    const popup = await (await opened).page();
    if (!popup) throw new Error("no window");
    await until("they are asked to sign in", () => popup.url().includes("/login"));
    await signIn(popup);
    await until("they are asked", () => popup.url().includes("/oauth2/consent"));
    expect(await page.evaluate("child.closed")).to.equal(false);
    await press(popup, "button[value=allow]");
    await isAt(popup, onApp("/callback"));
    await until(
      "the opener hears of it",
      async () => (await page.evaluate("messages.length")) === 1,
    );
    expect(await page.evaluate("messages[0]")).to.contain("code=");
  });

  it("pages of a signed-in person share no browsing context with other origins", async () => {
    await page.goto(`${base}/login`);
    await signIn(page);
    for (const path of ["/profile/clients", "/profile/password", "/profile/members"]) {
      const answer = await page.goto(base + path);
      const policy = answer?.headers()["cross-origin-opener-policy"];
      expect(policy, path).to.equal("same-origin");
    }
  });

  function asked(path: string, more: Record<string, string> = {}): string {
    const fields = { client_id: client.client_id, response_type: "code", scope: "account.read" };
    return `${base}/oauth2/auth?${new URLSearchParams({ ...fields, redirect_uri: onApp(path), ...more })}`;
  }

  function onApp(path: string): string {
    return urlOf(app) + path;
  }

  async function signIn(where: Page): Promise<void> {
    await where.waitForSelector("input[type=password]");
    await where.type("input[type=email]", world.owner.email);
    await where.type("input[type=password]", world.owner.password);
    await press(where, "main button");
  }
});

async function press(page: Page, selector: string): Promise<void> {
  const button = await page.waitForSelector(selector);
  // Errors are ignored here: if the form was refused, the page does not navigate, and the next wait of the test
  // fails.
  const moved = page.waitForNavigation({ timeout: 30_000 }).catch(() => undefined);
  await Promise.all([moved, button?.click()]);
}

async function isAt(page: Page, url: string): Promise<void> {
  await until(`the window is at ${url}`, () => page.url().split("?")[0] === url);
}

async function serve(
  answer: (path: string) => { text: string } | { location: string },
): Promise<Server> {
  const server = createServer((request, response) => {
    const given = answer(request.url ?? "");
    if ("location" in given) response.writeHead(302, { Location: given.location }).end();
    else response.writeHead(200, { "Content-Type": "text/html" }).end(given.text);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
