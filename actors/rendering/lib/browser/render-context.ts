/**
 * One browser context with one page. It shares nothing with other contexts, and all its requests go through its own
 * proxy.
 */
import type {
  BrowserContext,
  CDPSession,
  Page,
  Browser as PuppeteerBrowser,
  Target,
} from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { RENDERER_MEMORY_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import { authorizeContext, authorizeWithDocument } from "../../../egress/authorize-context.ts";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import { RendererCrashedError } from "./browser-died-error.ts";
import { ContextPage, setUpPage } from "./context-page.ts";
import type { EventBudgets } from "./event-budgets.ts";
import { IsolatedWorld } from "./isolated-world.ts";
import { type CrashCause, onPageCrash } from "./page-crash.ts";
import { sessionOf } from "./page-session.ts";

interface RenderContextOptions {
  browser: PuppeteerBrowser;
  userAgent: string;
  /** Event budgets of all contexts of the browser. */
  budgets: EventBudgets;
  openEgress: () => Promise<EgressProxy>;
  /** Aborts when the browser has died. */
  died: AbortSignal;
  /** Closes the context for good; called once. */
  release: (context: RenderContext) => Promise<void>;
}

export class RenderContext implements AsyncDisposable {
  readonly page: Page;
  /** A separate DevTools session, in addition to the session of puppeteer. */
  readonly session: CDPSession;
  readonly egress: EgressProxy;
  /** Id of the main frame, which stays the same across navigations. */
  readonly frameId: string;
  /** Aborts when the page or its browser is lost. The reason is the error that describes the cause. */
  readonly lost: AbortSignal;

  readonly #context: BrowserContext;
  readonly #world: IsolatedWorld;
  readonly #budgets: EventBudgets;
  readonly #release: (context: RenderContext) => Promise<void>;
  #released: Promise<void> | undefined;
  #authorized: Promise<void> | undefined;
  /** A second page that gives the proxy its credentials while the first page is in use. */
  #authorizer: Promise<Page> | undefined;
  /** Further pages that our code opened: those that are being opened, and those that are open. */
  readonly #opening = new Set<Promise<Page>>();
  readonly #pages = new WeakSet<Target>();

  /** Opens a context with a blank page that is ready to load. */
  static async open(options: RenderContextOptions): Promise<RenderContext> {
    const egress = await options.openEgress();
    let context: BrowserContext | undefined;
    const flooded = new AbortController();
    try {
      context = await options.browser.createBrowserContext({
        proxyServer: egress.url,
        // Requests to loopback addresses also go through the proxy, which refuses them.
        proxyBypassList: ["<-loopback>"],
        downloadBehavior: { policy: "deny" },
      });
      options.budgets.open(idOf(context), () => flooded.abort());
      const page = await context.newPage();
      const [{ session, frameId }] = await Promise.all([
        setUpPage(page, options.userAgent),
        // The page gets no permissions.
        sessionOf(page).send("Browser.grantPermissions", {
          permissions: [],
          browserContextId: idOf(context),
        }),
      ]);
      return new RenderContext({
        ...options,
        context,
        page,
        session,
        egress,
        frameId,
        flooded: flooded.signal,
      });
    } catch (error) {
      if (context !== undefined) options.budgets.close(idOf(context));
      await Promise.allSettled([context?.close(), egress.close()]);
      throw error;
    }
  }

  /** Use `open`. */
  constructor(
    parts: Pick<RenderContextOptions, "budgets" | "died" | "release"> & {
      context: BrowserContext;
      page: Page;
      session: CDPSession;
      egress: EgressProxy;
      frameId: string;
      flooded: AbortSignal;
    },
  ) {
    const { context, page, session, egress, frameId, budgets, flooded, died, release } = parts;
    const crashed = new AbortController();
    const lose = (how: string) => crashed.abort(lost(how));
    const crash = (cause: CrashCause) => {
      if (cause === "memory") lose(TOOK_TOO_MUCH);
      else crashed.abort(new RendererCrashedError(`Cannot render the page: ${CRASHED}`));
    };
    this.page = page;
    this.session = session;
    this.egress = egress;
    this.lost = AbortSignal.any([died, crashed.signal]);
    this.#context = context;
    this.#world = new IsolatedWorld(page, parts);
    this.#budgets = budgets;
    this.frameId = frameId;
    this.#release = release;
    onPageCrash(page, frameId, crash);
    page.on("close", () => {
      if (this.#released === undefined) lose("it closed itself");
    });
    const end = () => {
      lose("it makes more events than a browser can be watched by");
      this.release();
    };
    if (flooded.aborted) end();
    else flooded.addEventListener("abort", end, { once: true });
    // An open dialog blocks the page until it is answered.
    page.on("dialog", (dialog) => void dialog.dismiss().catch(ignoreClosed));
    context.on("targetcreated", (target) => void this.#closePopup(target).catch(ignoreClosed));
    egress.introduce = () => this.#authorizeBehind();
  }

  /**
   * Gives the proxy's credentials to the context by its page, which must be blank. Call this method if the page will
   * fetch something. Otherwise the context gets the credentials by a second page, at its first request.
   */
  async authorize(): Promise<void> {
    await this.#authorizeOnce(() => authorizeContext(this.page, this.egress));
  }

  /**
   * Gives the proxy's credentials to the context with the first document that its page loads. Until then, no other
   * code may intercept requests by `session`.
   */
  async authorizeWithDocument(): Promise<void> {
    await this.#authorizeOnce(() => authorizeWithDocument(this.session, this.egress));
  }

  /**
   * Returns the value of the expression, evaluated in an isolated world. Redefinitions by the page's scripts have no
   * effect there.
   */
  async evaluate(expression: string): Promise<unknown> {
    return await this.#world.evaluate(expression);
  }

  /**
   * Opens one more page in the same context, for pages that share cookies, caches and storage. If that page is lost,
   * the context and its other pages continue.
   */
  async openPage({ userAgent }: { userAgent: string }): Promise<ContextPage> {
    const opening = this.#context.newPage().then((page) => {
      this.#pages.add(page.target());
      return page;
    });
    this.#opening.add(opening);
    try {
      return await ContextPage.prepare(await opening, { context: this, userAgent });
    } finally {
      this.#opening.delete(opening);
    }
  }

  /**
   * Resets the context's count of events before it loads another page. Also resets its bytes and failures, unless
   * other pages are loading in the context.
   */
  begin({ bytesMax, besideOthers }: { bytesMax: number; besideOthers: boolean }): void {
    if (!besideOthers) this.egress.begin({ bytesMax });
    this.#budgets.renew(idOf(this.#context));
  }

  /** Allows the pages of the context to read the geolocation that is set for them. */
  async grantGeolocation(): Promise<void> {
    const browserContextId = idOf(this.#context);
    const granted = { permissions: ["geolocation" as const], browserContextId };
    await sessionOf(this.page).send("Browser.grantPermissions", granted);
  }

  /** Admits all events of the context, also console messages. They count in its event budget in any case. */
  hearAll(): void {
    this.#budgets.hear(idOf(this.#context));
  }

  /** Closes the context with its pages, its storage and its connections. */
  async close(): Promise<void> {
    await Promise.all([this.#context.close(), this.egress.close()]);
    this.#budgets.close(idOf(this.#context));
  }

  /** Releases the context. It is closed in the background, so the caller need not wait. */
  release(): void {
    this.#released ??= this.#release(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
  }

  async #authorizeBehind(): Promise<void> {
    await this.#authorizeOnce(() => this.#authorizeByPage());
  }

  /** If the authorization fails, the next caller tries again, because a context may serve many pages one after the other. */
  async #authorizeOnce(authorize: () => Promise<void>): Promise<void> {
    this.#authorized ??= authorize();
    const authorized = this.#authorized;
    try {
      await authorized;
    } catch (error) {
      if (this.#authorized === authorized) this.#authorized = undefined;
      throw error;
    }
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
    // The event for a page that our code opens arrives before `openPage` returns the page.
    await Promise.allSettled(this.#opening);
    if (this.#pages.has(target)) return;
    await (await target.page())?.close();
  }
}

/** Only the browser's first context has no id, and we never use it. */
function idOf({ id }: BrowserContext): string {
  if (id === undefined) throw new Error("Cannot use context: it has no id");
  return id;
}

const CRASHED = "it made its renderer crash";
const TOOK_TOO_MUCH = `it takes too much memory; a page may take ${RENDERER_MEMORY_BYTES_MAX / 1_000_000} MB of memory, less while others take much`;

function lost(how: string): ActorError {
  return new ActorError("browser_crashed", `Cannot render the page: ${how}`);
}

/** The page was closed first, so the pending call needs no result. */
function ignoreClosed(): void {}
