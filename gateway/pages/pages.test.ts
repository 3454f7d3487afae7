import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "chai";
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import { findChromium } from "../../scripts/tools.ts";
import {
  type OAuthWorld,
  oauthWorld,
  REDIRECT_URI,
  type Wire,
} from "../oauth/testing/oauth-world.ts";

/** Where pictures of the pages go, for people to look at; unset: nowhere. */
const PICTURES = process.env.PAGE_PICTURES;
const LOOKS = [
  { name: "light", scheme: "light", width: 1_000, height: 800 },
  { name: "dark", scheme: "dark", width: 1_000, height: 800 },
  { name: "narrow", scheme: "light", width: 320, height: 640 },
] as const;

describe("pages in Chromium", function () {
  this.timeout(90_000);
  let world: OAuthWorld;
  let browser: Browser;
  let page: Page;
  let axe: string;
  before(async () => {
    world = await oauthWorld();
    axe = await readFile(createRequire(import.meta.url).resolve("axe-core"), "utf8");
    browser = await puppeteer.launch({
      executablePath: findChromium(process.env),
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    });
    page = await browser.newPage();
    await page.setJavaScriptEnabled(false);
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });

  it("a person signs up, is asked, allows, and takes it back: every page passes the audit", async () => {
    const client = await world.makeClient({
      client_name: "Build Bot",
      client_uri: "https://bot.example.com",
      policy_uri: "https://bot.example.com/privacy",
      tos_uri: "https://bot.example.com/terms",
      scopes: ["openid", "account.read", "artifacts.read", "artifacts.write", "apps.write"],
      optional_scopes: ["artifacts.write", "apps.write"],
    });
    const [url = ""] = world.urls;
    const authorize = new URL("/oauth2/auth", url);
    authorize.search = new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      state: "a-state",
      login_hint: world.owner.email,
    }).toString();

    await page.goto(`${url}/signup`);
    await look("signup");
    await page.goto(`${url}/oauth2/auth?client_id=none`);
    await look("error");
    await page.goto(authorize.href);
    await look("login");
    await fill("Password", "wrong wrong");
    await press("Sign in");
    expect(await text()).to.contain("is not right");
    await look("login-refused");
    await fill("Password", world.owner.password);
    await press("Sign in");
    await look("consent");
    expect(await text()).to.contain("Artifacts Write");

    // Without a mouse: the page's second optional scope is unticked, and Allow is pressed.
    await page.focus("aria/Apps Write[role='checkbox']");
    await page.keyboard.press("Space");
    await page.focus("aria/Allow[role='button']");
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT_URI));
    await page.keyboard.press("Enter");
    expect((await back).url())
      .to.contain("state=a-state")
      .and.to.contain("code=");

    await page.goto(`${url}/profile`);
    await look("clients");
    expect(await text())
      .to.contain("Build Bot")
      .and.to.contain("Artifacts Write")
      .and.not.to.contain("Apps Write");
    await press("Revoke");
    expect(await text()).to.contain("Revoked.");
    await look("clients-none");
    await page.goto(`${url}/profile/password`);
    await look("password");
    await page.goto(`${url}/oauth2/logout`);
    await look("logout");
    await press("Sign out");
    await look("logged-out");
    await page.goto(`${url}/profile`);
    expect(page.url()).to.contain("/login");
  });

  it("who is no member of a private client's account is told, and goes back with access_denied", async () => {
    const client = await world.makeClient({ client_name: "Inside <b>Bot</b>" });
    const [url = ""] = world.urls;
    await page.goto(`${url}/signup`);
    await fill("Email", "outside@example.com");
    await fill("Password", "correct horse");
    await press("Create account");
    const query = new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
    });
    await page.goto(`${url}/oauth2/auth?${query}`);
    expect(await text()).to.contain("Inside <b>Bot</b> is private");
    await look("private");
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT_URI));
    await press("Back to Inside <b>Bot</b>");
    expect((await back).url()).to.contain("error=access_denied");
  });

  const text = () => page.$eval("body", (body: Wire) => body.innerText as string);
  const fill = async (label: string, value: string) => {
    const field = await page.waitForSelector(`aria/${label}[role='textbox']`).catch(() => null);
    const element = field ?? (await page.waitForSelector(`input[type=password]`));
    await element?.click({ count: 3 });
    await element?.type(value);
  };
  const press = async (name: string) => {
    const button = await page.waitForSelector(`aria/${name}[role='button']`);
    await Promise.all([page.waitForNavigation().catch(() => {}), button?.click()]);
  };

  async function look(name: string): Promise<void> {
    for (const { name: as, scheme, width, height } of LOOKS) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      if (PICTURES !== undefined) {
        await mkdir(PICTURES, { recursive: true });
        await page.screenshot({ path: join(PICTURES, `${name}-${as}.png`), fullPage: true });
      }
      const wide = await page.evaluate("document.documentElement.scrollWidth");
      expect(wide, `${name} ${as} is wider than its window`).to.be.at.most(width);
      await page.setJavaScriptEnabled(true);
      const found = (await page.evaluate(`${axe}; axe.run()`)) as Wire;
      await page.setJavaScriptEnabled(false);
      const faults = found.violations.map(({ id, nodes }: Wire) => `${id}: ${nodes[0]?.html}`);
      expect(faults, `${name} ${as}`).to.deep.equal([]);
    }
  }
});
