/** One more page of a browser context, for work whose pages share cookies, caches and storage. */
import type { CDPSession, Page } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import { IsolatedWorld } from "./isolated-world.ts";
import { mainFrameIdOf, sessionOf } from "./page-session.ts";

export const VIEWPORT = { width: 1_920, height: 1_080 };

/**
 * The visible surface of a page that is not captured. Drawing a surface of the size of VIEWPORT took a tenth of the
 * time of a small PDF, and one of 800 x 600, Chromium's own size, 4 to 8 ms. Layout and scripts do not see this size.
 */
const HIDDEN_SURFACE = { width: 16, height: 16 };

/**
 * Sets the size of VIEWPORT for the layout and for the scripts of the page. Code that takes a screenshot calls
 * `setViewport`, which also gives the visible surface its size.
 */
async function layOut(page: Page): Promise<void> {
  const session = sessionOf(page);
  await Promise.all([
    session.send("Emulation.setVisibleSize", HIDDEN_SURFACE),
    session.send("Emulation.setDeviceMetricsOverride", {
      ...VIEWPORT,
      deviceScaleFactor: 1,
      mobile: false,
      // The value that puppeteer uses for a page that is not rotated.
      screenOrientation: { angle: 0, type: "portraitPrimary" },
      dontSetVisibleSize: true,
    }),
  ]);
}

/** Prepares every page before use: a DevTools session, the viewport and the user agent. */
export async function setUpPage(
  page: Page,
  userAgent: string,
): Promise<{ session: CDPSession; frameId: string }> {
  // Removes a listener of puppeteer: at each event it checks every request to count the open ones. With 5,000 images
  // that blocked this process for 5 s.
  page.removeAllListeners("request");
  const [session] = await Promise.all([
    page.createCDPSession(),
    layOut(page),
    page.setUserAgent({ userAgent }),
    page.setBypassServiceWorker(true),
  ]);
  return { session, frameId: mainFrameIdOf(page) };
}

/** The members of the context that the page needs. */
interface OwnContext {
  readonly egress: EgressProxy;
  readonly lost: AbortSignal;
  /** Makes the context known to its proxy. */
  authorize(): Promise<void>;
}

export class ContextPage {
  readonly page: Page;
  /** A separate DevTools session, in addition to the session of puppeteer. */
  readonly session: CDPSession;
  /** Aborts when the page, its context or its browser is lost. The reason is the error that describes the cause. */
  readonly lost: AbortSignal;
  /** Id of the main frame, which stays the same across navigations. */
  readonly frameId: string;
  readonly #context: OwnContext;
  readonly #world: IsolatedWorld;

  static async prepare(
    page: Page,
    { context, userAgent }: { context: OwnContext; userAgent: string },
  ): Promise<ContextPage> {
    return new ContextPage({ page, context, ...(await setUpPage(page, userAgent)) });
  }

  /** Use `prepare`, which `RenderContext.openPage` calls. */
  constructor(parts: {
    page: Page;
    session: CDPSession;
    context: OwnContext;
    frameId: string;
  }) {
    const { page, session, context } = parts;
    this.page = page;
    this.session = session;
    this.frameId = parts.frameId;
    this.#context = context;
    this.#world = new IsolatedWorld(page, this);
    const gone = new AbortController();
    this.lost = AbortSignal.any([context.lost, gone.signal]);
    const lose = (how: string) =>
      gone.abort(new ActorError("browser_crashed", `Cannot render the page: ${how}`));
    page.on("error", () => lose("it made its renderer crash"));
    page.on("close", () => lose("it closed itself"));
    // An open dialog blocks the page until it is answered.
    page.on("dialog", (dialog) => {
      dialog.dismiss().catch(() => {
        // The page was closed first.
      });
    });
  }

  get egress(): EgressProxy {
    return this.#context.egress;
  }

  /** Evaluates the expression in an isolated world, apart from the page's own scripts, and returns its value. */
  evaluate(expression: string): Promise<unknown> {
    return this.#world.evaluate(expression);
  }

  /** Makes the context known to its proxy. */
  authorize(): Promise<void> {
    return this.#context.authorize();
  }
}
