import { chmod, mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { expect } from "chai";
import type { Browser, BrowserContext, Page } from "puppeteer-core";
import { freePort } from "../../scripts/free-port.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { startPersonBrowser } from "../../scripts/testing/person-browser.ts";
import { type Credentials, RoleProcess } from "../../scripts/testing/role-process.ts";
import { selfSignedCertificate } from "../../scripts/testing/self-signed-certificate.ts";
import { until } from "../../scripts/testing/until.ts";

/** The hostile app. The requested path selects the page that it returns, or it returns the request's headers. */
const HOSTILE = `
const page = (text, headers = {}) => new Response("<!doctype html><title>hostile</title><body>" + text, {
  headers: { "content-type": "text/html", ...headers },
});
export default {
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case "/headers": return Response.json([...request.headers]);
      case "/clear": return page("", { "clear-site-data": '"cookies", "storage"' });
      case "/clear-all": return page("", { "clear-site-data": '"*"' });
      case "/domain": return page("", { "set-cookie": "wide=1; Domain=" + searchParams.get("domain") + "; Path=/" });
      case "/script": return page("<script>document.title = 'ran'</script>");
      case "/drawing": return new Response('<svg xmlns="http://www.w3.org/2000/svg"><title>hostile</title><script>document.title = "ran"</script></svg>', {
        headers: { "content-type": "image/svg+xml" },
      });
      case "/worker.js": return new Response("self.onfetch = (event) => event.respondWith(new Response('taken over'))", {
        headers: { "content-type": "text/javascript", "service-worker-allowed": "/" },
      });
      case "/password": return new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="Trunkline"' } });
      case "/frame": return page('<iframe src="' + searchParams.get("of") + '"></iframe>');
    }
    return page("");
  },
};
`;

/**
 * The worst configuration that an operator may choose: apps are below the platform's own host name, so that browsers
 * treat their pages as same-site.
 */
const HOST = "trunkline.localhost";

describe("a hostile page of an app while a person is signed in", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  let proxy: Server;
  let browser: Browser;
  let context: BrowserContext;
  let ours: Page;
  let hostile: Page;
  let url: string;
  let user: Credentials["user"];
  const hostOf = (app: string) =>
    `https://${app}.${platform.accountId}.apps.${HOST}:${new URL(url).port}`;
  const below = (path: string) => `${url}/apps/${platform.accountId}/hostile${path}`;

  before(async () => {
    const [port, proxyPort] = [await freePort(), await freePort()];
    url = `https://${HOST}:${proxyPort}`;
    proxy = createServer(selfSignedCertificate(HOST), (socket) => {
      const inner = connect(port, "127.0.0.1");
      for (const [one, other] of [
        [socket, inner],
        [inner, socket],
      ] as const) {
        one.on("error", () => {}).on("close", () => other.destroy());
        one.pipe(other);
      }
    });
    await new Promise<void>((resolve) => proxy.listen(proxyPort, "127.0.0.1", resolve));
    const folder = await mkdtemp(join(tmpdir(), "trunkline-apps-"));
    await chmod(folder, 0o755);
    const instance = new RoleProcess(join(folder, "data"), tmpdir(), port, {
      TRUNKLINE_PUBLIC_URL: url,
      TRUNKLINE_APPS_DOMAIN: `apps.${HOST}:${proxyPort}`,
      TRUNKLINE_ROLES: "gateway,actors",
    });
    await instance.ready();
    const credentials = await instance.credentials();
    user = credentials.user;
    platform = new AppPlatform(instance, folder, {
      ...credentials,
      base_url: `http://127.0.0.1:${port}/v4`,
    });
    for (const app of ["hostile", "other"]) {
      expect((await platform.deploy(app, HOSTILE)).status).to.equal(200);
    }
    browser = await startPersonBrowser({ acceptInsecureCerts: true });
  });
  after(async () => {
    await browser?.close();
    await platform?.[Symbol.asyncDispose]();
    await new Promise((resolve) => proxy?.close(resolve) ?? resolve(undefined));
  });

  beforeEach(async () => {
    context = await browser.createBrowserContext();
    ours = await context.newPage();
    await ours.goto(`${url}/login`);
    await ours.type("aria/Email[role='textbox']", user.email);
    await ours.type("input[type=password]", user.password);
    await Promise.all([ours.waitForNavigation(), ours.click("main form button")]);
    expect(await isSignedIn()).to.equal(true);
    hostile = await context.newPage();
    await hostile.goto(`${hostOf("hostile")}/`);
  });
  afterEach(() => context.close());

  async function isSignedIn(): Promise<boolean> {
    await ours.goto(`${url}/profile/password`);
    return ours.url().endsWith("/profile/password");
  }

  /** Runs code in a page. The code can use `given`. */
  const run = (page: Page, code: string, given: unknown = null) =>
    page.evaluate(`(async (given) => { ${code} })(${JSON.stringify(given)})`);
  const textOf = (page: Page) => run(page, "return document.body.innerText");

  it("reads nothing of the platform, with or without credentials", async () => {
    const paths = ["/v4/accounts", "/profile/clients", "/oauth2/auth?client_id=x", "/docs", "/"];
    const read = await run(
      hostile,
      `const asked = given.flatMap((target) => ["include", "omit"].map((credentials) =>
        fetch(target, { credentials }).then((answer) => target + " " + answer.type, () => "")));
      return (await Promise.all(asked)).join("");`,
      paths.map((path) => url + path),
    );
    expect(read).to.equal("");
    // Cookies alone do not authenticate a request to the API, even a request whose response the page cannot read.
    await ours.goto(`${url}/v4/accounts`);
    expect(await textOf(ours)).to.include('"success":false');
  });

  it("changes nothing by posting forms, in the background or visibly", async () => {
    const forms: [string, Record<string, string>][] = [
      ["/signout", {}],
      ["/login", { email: user.email, password: user.password }],
      ["/profile/password", { current: user.password, password: "of the hostile page" }],
      ["/profile/members/invite", { email: "hostile@example.com", role: "Super Administrator" }],
      ["/profile/clients/revoke", { client: "x" }],
      ["/oauth2/consent", { decision: "allow" }],
    ];
    for (const [path, fields] of forms) {
      await hostile.goto(`${hostOf("hostile")}/`);
      const target = url + path;
      await run(
        hostile,
        `await fetch(given.target, {
          method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams(given.fields),
        }).catch(() => {});`,
        { target, fields },
      );
      const [answer] = await Promise.all([
        hostile.waitForNavigation(),
        run(
          hostile,
          `const form = document.createElement("form");
          Object.assign(form, { method: "post", action: given.target });
          for (const [name, value] of Object.entries(given.fields)) {
            form.append(Object.assign(document.createElement("input"), { name, value }));
          }
          document.body.append(form);
          setTimeout(() => form.submit());`,
          { target, fields },
        ),
      ]);
      // Sign-out redirects in any case; the check below shows that it had no effect.
      if (path !== "/signout") expect(answer?.status(), path).to.be.within(400, 403);
      expect(await isSignedIn(), path).to.equal(true);
    }
    const members = await platform.rest("GET", "/members");
    expect(members.body.result).to.have.length(1);
  });

  it("cannot show the platform's pages in a frame, nor access those that it opens", async () => {
    for (const path of ["/login", "/profile/members", "/oauth2/auth?client_id=x", "/docs"]) {
      await hostile.goto(`${hostOf("hostile")}/frame?of=${encodeURIComponent(url + path)}`);
      const frame = await until("there is a frame", () => hostile.frames()[1]);
      await until("it shows nothing", () => frame.url().startsWith("chrome-error:"));
    }
    const [opened] = await Promise.all([
      new Promise<Page>((resolve) => hostile.once("popup", (page) => resolve(page as Page))),
      run(hostile, "globalThis.opened = window.open(given)", `${url}/profile/clients`),
    ]);
    await until("it is ours", () => opened.url().startsWith(url));
    await until("the hostile page has lost it", async () => {
      return (await run(hostile, "return globalThis.opened.closed")) === true;
    });
    expect(await run(opened, "return window.opener")).to.equal(null);
  });

  it("cannot set or remove the platform's cookies", async () => {
    const names = (await context.cookies()).filter(({ domain }) => domain === HOST);
    const session = names.find(({ name }) => name.endsWith("tl_session"));
    expect(session?.name).to.equal("__Host-tl_session");
    await run(
      hostile,
      `for (const name of ["__Host-tl_session", "__Host-tl_browser", "tl_session", "tl_browser"]) {
        for (const domain of [given, "apps." + given]) {
          for (const path of ["/", "/profile", "/login", "/oauth2"]) {
            document.cookie = name + "=hostile; domain=" + domain + "; path=" + path + "; secure";
          }
        }
      }`,
      HOST,
    );
    expect(await isSignedIn()).to.equal(true);
    for (const path of ["/clear", "/clear-all"]) {
      await hostile.goto(hostOf("hostile") + path);
      expect(await isSignedIn(), path).to.equal(true);
    }
    const kept = (await context.cookies()).find(({ name }) => name === session?.name);
    expect(kept?.value).to.equal(session?.value);
  });

  it("cannot set a cookie for other apps, and has no origin shared by all apps", async () => {
    for (const domain of [HOST, `apps.${HOST}`, `${platform.accountId}.apps.${HOST}`]) {
      await hostile.goto(`${hostOf("hostile")}/domain?domain=${domain}`);
    }
    await hostile.goto(`${hostOf("other")}/headers`);
    const shown = await textOf(hostile);
    expect(shown).to.include('"host"').and.not.include("wide=1");
    for (const host of [`apps.${HOST}`, `${platform.accountId}.apps.${HOST}`]) {
      const answer = await hostile.goto(`https://${host}:${new URL(url).port}/login`);
      expect(answer?.status(), host).to.equal(404);
    }
  });

  it("gets no cookie and no referrer of the platform, at its own origin and below the platform's", async () => {
    for (const path of [`${hostOf("hostile")}/headers`, below("/headers")]) {
      await ours.goto(`${url}/profile/clients`);
      await run(ours, "setTimeout(() => { location.href = given; })", path);
      await until("it is there", () => ours.url() === path);
      // The URL changes before the page is loaded.
      const shown = await until("it shows what it was sent", async () => {
        const text = String(await run(ours, "return document.body?.innerText"));
        return text.includes('"host"') && text;
      });
      expect(shown, path).to.not.include("tl_session").and.not.include("referer");
    }
  });

  it("cannot run scripts, workers or password prompts below the platform's address", async () => {
    for (const path of ["/script", "/drawing"]) {
      await ours.goto(below(path));
      expect(await ours.title(), path).to.equal("hostile");
    }
    const registered = await run(
      hostile,
      `return navigator.serviceWorker.register(given).then(() => "registered", ({ name }) => name)`,
      below("/worker.js"),
    );
    expect(registered).to.equal("SecurityError");
    const answer = await ours.goto(below("/password"));
    expect(answer?.status()).to.equal(401);
    expect(answer?.headers()["www-authenticate"]).to.equal(undefined);
    // At its own origin the app may register a worker, because no other app or page uses this origin.
    const own = await run(
      hostile,
      `await navigator.serviceWorker.register("/worker.js");
      await navigator.serviceWorker.ready;
      return "registered";`,
    );
    expect(own).to.equal("registered");
    expect(await isSignedIn()).to.equal(true);
    const other = await hostile.goto(`${hostOf("other")}/headers`);
    expect(await other?.text()).to.include('"host"');
  });
});
