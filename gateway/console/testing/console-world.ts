/** A whole platform, a browser with a signed-in person, and checks that every page of the console must pass. */
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer-core";
import { AppPlatform } from "../../../scripts/testing/app-platform.ts";
import { startPersonBrowser } from "../../../scripts/testing/person-browser.ts";

/** Folder to store pictures of the pages for people. If unset, no pictures are stored. */
const PICTURES = process.env.PAGE_PICTURES;
/** Timeout for a page to load on a busy machine. */
const WAIT_MS_MAX = 60_000;
const WIDTHS = [360, 1_280];
const SCHEMES = ["light", "dark"] as const;
/** Sets of rules of axe. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
export class ConsoleWorld implements AsyncDisposable {
  readonly platform: AppPlatform;
  readonly page: Page;
  readonly #browser: Browser;
  readonly #axe: string;
  /** Console errors, violations of the content security policy, and requests to other origins. */
  readonly faults: string[] = [];

  /** Starts the platform and the browser, signs in as the account's owner, and opens the first page. */
  static async start(environment: NodeJS.ProcessEnv = {}): Promise<ConsoleWorld> {
    const platform = await AppPlatform.start(environment);
    const browser = await startPersonBrowser();
    const axe = await readFile(
      createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
      "utf8",
    );
    const world = new ConsoleWorld(platform, browser, await browser.newPage(), axe);
    await world.#watch();
    await world.signIn();
    return world;
  }

  private constructor(platform: AppPlatform, browser: Browser, page: Page, axe: string) {
    this.platform = platform;
    this.page = page;
    this.#browser = browser;
    this.#axe = axe;
    page.setDefaultTimeout(WAIT_MS_MAX);
  }

  async #watch(): Promise<void> {
    const { page, faults } = this;
    const own = new URL(this.platform.url).origin;
    page.on("pageerror", (error) => faults.push(`error: ${error}`));
    page.on("console", (message) => {
      // Chromium logs a line for each refusal of the REST API. These lines are ignored, because the pages show
      // refusals themselves.
      const isRefusal = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isRefusal) faults.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      const isOwn = url.origin === own || ["blob:", "data:"].includes(url.protocol);
      if (!isOwn) faults.push(`request to ${url.origin}`);
    });
    await page.evaluateOnNewDocument(`addEventListener("securitypolicyviolation", (event) => {
      console.error("violates " + event.violatedDirective + ": " + event.blockedURI);
    })`);
  }

  async signIn(path = ""): Promise<void> {
    const { email, password } = this.platform.credentials.user;
    await this.page.setViewport({ width: 1_280, height: 800 });
    await this.page.goto(`${this.platform.url}/console${path && `/${path}`}`);
    await this.fill("Email", email);
    await this.fill("Password", password);
    await this.press("Sign in");
    await this.heading("Home");
  }

  /** Intercepts the matching requests until the returned object is disposed: `instead` answers or delays them. */
  async intercept(
    fits: (request: HTTPRequest) => boolean,
    instead: (request: HTTPRequest) => void,
  ): Promise<AsyncDisposable> {
    const { page } = this;
    const take = (request: HTTPRequest) => {
      if (fits(request)) instead(request);
      else void request.continue();
    };
    await page.setRequestInterception(true);
    page.on("request", take);
    return {
      async [Symbol.asyncDispose]() {
        page.off("request", take);
        await page.setRequestInterception(false);
      },
    };
  }

  /** Opens a second browser in which the owner is signed in. */
  async elsewhere(): Promise<Page> {
    const context = await this.#browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    const { email, password } = this.platform.credentials.user;
    await page.goto(`${this.platform.url}/login`);
    await page.type('[name="email"]', email);
    await page.type('[name="password"]', password);
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    return page;
  }

  /** Opens another browser in which a new person has just signed up. The instance must allow sign-ups. */
  async stranger(email: string): Promise<Page> {
    const context = await this.#browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS_MAX);
    await page.setViewport({ width: 1_280, height: 800 });
    for (const path of ["signup", "login"]) {
      await page.goto(`${this.platform.url}/${path}`);
      await page.type('[name="email"]', email);
      await page.type('[name="password"]', "correct horse");
      await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    }
    return page;
  }

  /**
   * Presses a button that opens a dialog, and waits until it is open: before that, fields of the page behind it could
   * have the same names.
   */
  async openDialog(name: string): Promise<void> {
    await this.press(name);
    await this.page.waitForSelector("dialog[open]");
  }

  /** Presses a button of the open dialog, and waits until the dialog is closed. */
  async confirm(name: string): Promise<void> {
    await (await this.page.waitForSelector(`dialog ::-p-aria(${name}[role="button"])`))?.click();
    await this.page.waitForFunction('!document.querySelector("dialog")');
  }

  /** Returns the secret that the page shows only one time. */
  async secret(): Promise<string> {
    return String(
      await this.page.evaluate('document.querySelector(".note .copyable code").innerText'),
    );
  }

  /** Opens a page of the account by its path, and waits for its heading. */
  async open(path: string, heading: string): Promise<void> {
    const { accountId, url } = this.platform;
    await this.page.goto(`${url}/console/${accountId}${path && `/${path}`}`);
    await this.heading(heading);
  }

  async heading(text: string): Promise<void> {
    await this.page.waitForSelector(`aria/${text}[role="heading"]`);
  }

  /** Replaces the value of the field with this label. */
  async fill(label: string, text: string): Promise<void> {
    const field = await this.page.waitForSelector(`aria/${label}[role="textbox"]`);
    await field?.evaluate((element) => (element as unknown as { select(): void }).select());
    await this.page.keyboard.press("Backspace");
    await field?.type(text);
  }

  /** Replaces the value of a field for numbers. */
  async type(label: string, text: string): Promise<void> {
    const field = await this.page.waitForSelector(`aria/${label}[role="spinbutton"]`);
    await field?.evaluate((element) => (element as unknown as { select(): void }).select());
    await field?.type(text);
  }

  async press(name: string): Promise<void> {
    await (await this.page.waitForSelector(`aria/${name}[role="button"]`))?.click();
  }

  async follow(name: string): Promise<void> {
    await (await this.page.waitForSelector(`aria/${name}[role="link"]`))?.click();
  }

  /** Ticks a checkbox, or chooses a radio button. */
  async choose(label: string, role: "checkbox" | "radio" = "checkbox"): Promise<void> {
    await (await this.page.waitForSelector(`aria/${label}[role="${role}"]`))?.click();
  }

  /** Waits until the page says this. */
  async says(text: string): Promise<void> {
    const found = `document.body.innerText.includes(${JSON.stringify(text)})`;
    await this.page.waitForFunction(found).catch(async (error: unknown) => {
      throw new Error(`Cannot find "${text}" in: ${await this.text()}`, { cause: error });
    });
  }

  async text(): Promise<string> {
    return String(await this.page.evaluate("document.body.innerText"));
  }

  /** Makes the page read its data again, as it does when it becomes visible. */
  async refresh(): Promise<void> {
    await this.page.evaluate('document.dispatchEvent(new Event("visibilitychange")); 0');
  }

  /** Waits until nothing is loading. */
  async settled(): Promise<void> {
    await this.page.waitForFunction('!document.querySelector(".skeleton, .starting")');
  }

  /**
   * Audits the current page with axe in both colour schemes and widths, and checks that nothing is wider than the
   * screen. Takes pictures if PAGE_PICTURES is set.
   */
  async audit(name: string): Promise<void> {
    await this.settled();
    for (const width of WIDTHS) {
      await this.page.setViewport({ width, height: width === 360 ? 780 : 800 });
      for (const scheme of SCHEMES) {
        await this.page.emulateMediaFeatures([
          { name: "prefers-color-scheme", value: scheme },
          { name: "prefers-reduced-motion", value: "reduce" },
        ]);
        await this.#picture(`${name}-${width}-${scheme}`);
        expect(await this.#violations(scheme), `${name} ${width} ${scheme}`).to.deep.equal([]);
      }
      const over = `Math.max(document.documentElement.scrollWidth - innerWidth,
        ...[...document.querySelectorAll("dialog")].map((one) => one.scrollWidth - one.clientWidth))`;
      expect(await this.page.evaluate(over), `${name} is wider than ${width}`).to.be.at.most(0);
    }
    await this.page.setViewport({ width: 1_280, height: 800 });
    this.checkFaults();
  }

  /** Asserts that no injected script ran, no error was logged, and no other origin was requested. */
  checkFaults(): void {
    expect(this.faults).to.deep.equal([]);
  }

  async isHacked(): Promise<boolean> {
    return Boolean(await this.page.evaluate("window.hacked"));
  }

  async #picture(name: string): Promise<void> {
    if (PICTURES === undefined) return;
    await mkdir(PICTURES, { recursive: true });
    await this.page.evaluate("scrollTo(0, 0)");
    await this.page.screenshot({
      path: join(PICTURES, `${name}.png`) as `${string}.png`,
      fullPage: true,
    });
  }

  /** Only colours differ between the two schemes, so in the second scheme only contrast is checked. */
  async #violations(scheme: (typeof SCHEMES)[number]): Promise<string[]> {
    if (!(await this.page.evaluate('"axe" in window'))) await this.page.evaluate(`${this.#axe}; 0`);
    const found = await this.page.evaluate(`axe.run(document, {
      runOnly: ${JSON.stringify(scheme === "light" ? RULES : ["color-contrast"])},
      resultTypes: ["violations"],
    }).then(({ violations }) => violations.map(({ id, help, nodes }) =>
      id + ": " + help + ": " + nodes.map(({ html, any }) => html + " " + any.map(({ message }) => message)).join("; ")))`);
    return found as string[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
    await this.platform[Symbol.asyncDispose]();
  }
}
