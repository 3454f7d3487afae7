/** One browser context with one page: nothing of it is shared with any other, and all it fetches passes one proxy. */
import type {
  BrowserContext,
  CDPSession,
  Page,
  Browser as PuppeteerBrowser,
  Target,
} from "puppeteer-core";
import { ActorError } from "../../schemas/errors.ts";
import { authorizeContext } from "../egress/authorize-context.ts";
import type { EgressProxy } from "../egress/egress-proxy.ts";

const VIEWPORT = { width: 1_920, height: 1_080 };

export interface RenderContextOptions {
  browser: PuppeteerBrowser;
  userAgent: string;
  openEgress: () => Promise<EgressProxy>;
  /** Aborts when the browser has died. */
  died: AbortSignal;
  /** Closes the context for good; called once. */
  release: (context: RenderContext) => Promise<void>;
}

export class RenderContext implements AsyncDisposable {
  readonly page: Page;
  /** A DevTools session of our own beside puppeteer's. */
  readonly session: CDPSession;
  readonly egress: EgressProxy;
  /** Aborts when the page or its browser is gone, with the error that says so. */
  readonly lost: AbortSignal;

  readonly #context: BrowserContext;
  readonly #release: (context: RenderContext) => Promise<void>;
  #released: Promise<void> | undefined;
  #authorized: Promise<void> | undefined;
  /** A second page, which a page that is in use cannot replace. */
  #authorizer: Promise<Page> | undefined;

  /** A blank page, ready to load. */
  static async open(options: RenderContextOptions): Promise<RenderContext> {
    const egress = await options.openEgress();
    let context: BrowserContext | undefined;
    try {
      context = await options.browser.createBrowserContext({
        proxyServer: egress.url,
        // Loopback too goes through the proxy, which refuses it.
        proxyBypassList: ["<-loopback>"],
        downloadBehavior: { policy: "deny" },
      });
      const page = await context.newPage();
      const session = await page.createCDPSession();
      await Promise.all([
        page.setViewport(VIEWPORT),
        page.setUserAgent({ userAgent: options.userAgent }),
        page.setBypassServiceWorker(true),
        // What is granted here is all there is: nothing.
        session.send("Browser.grantPermissions", {
          permissions: [],
          ...(context.id === undefined ? {} : { browserContextId: context.id }),
        }),
      ]);
      return new RenderContext({ ...options, context, page, session, egress });
    } catch (error) {
      await Promise.allSettled([context?.close(), egress.close()]);
      throw error;
    }
  }

  /** Use `open`. */
  constructor(
    parts: Pick<RenderContextOptions, "died" | "release"> & {
      context: BrowserContext;
      page: Page;
      session: CDPSession;
      egress: EgressProxy;
    },
  ) {
    const { context, page, session, egress, died, release } = parts;
    const crashed = new AbortController();
    this.page = page;
    this.session = session;
    this.egress = egress;
    this.lost = AbortSignal.any([died, crashed.signal]);
    this.#context = context;
    this.#release = release;
    page.on("error", () => crashed.abort(pageCrashed()));
    // A dialog holds the page until somebody answers.
    page.on("dialog", (dialog) => void dialog.dismiss().catch(ignoreClosed));
    context.on("targetcreated", (target) => void this.#closePopup(target).catch(ignoreClosed));
    egress.introduce = () => this.#authorizeBehind();
  }

  /**
   * Makes the context known to its proxy by way of its page, which has to be blank. Whoever knows that the page will
   * fetch calls it: without it the first request has the same done, which takes a page more.
   */
  async authorize(): Promise<void> {
    this.#authorized ??= authorizeContext(this.page, this.egress);
    await this.#authorized;
  }

  /** Closes the page, its storage and its connections. */
  async close(): Promise<void> {
    await Promise.all([this.#context.close(), this.egress.close()]);
  }

  /** Gives the context up; it is closed behind the caller's back, who need not wait for that. */
  release(): void {
    this.#released ??= this.#release(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
  }

  async #authorizeBehind(): Promise<void> {
    this.#authorized ??= this.#authorizeByPage();
    await this.#authorized;
  }

  async #authorizeByPage(): Promise<void> {
    this.#authorizer = this.#context.newPage();
    const page = await this.#authorizer;
    await authorizeContext(page, this.egress);
    await page.close();
  }

  async #closePopup(target: Target): Promise<void> {
    const authorizer = await this.#authorizer;
    if (target.type() !== "page") return;
    if (target === this.page.target() || target === authorizer?.target()) return;
    await (await target.page())?.close();
  }
}

function pageCrashed(): ActorError {
  return new ActorError("browser_crashed", "Cannot render the page: it made its renderer crash");
}

/** The page went first, and what was asked of it is settled by that. */
function ignoreClosed(): void {}
