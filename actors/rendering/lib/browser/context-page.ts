/** A further page of a browser context, for work whose pages share what sites keep. */
import type { CDPSession, Page } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import { evaluateApart } from "./isolated-world.ts";
import { sessionOf } from "./page-session.ts";

export const VIEWPORT = { width: 1_920, height: 1_080 };

/**
 * The page is laid out for VIEWPORT and takes itself to be so large, but is not shown so large: the browser draws
 * what it shows, and of a small PDF's time that was a tenth. Who takes a picture of it calls `setViewport`.
 */
async function layOut(page: Page): Promise<void> {
  await sessionOf(page).send("Emulation.setDeviceMetricsOverride", {
    ...VIEWPORT,
    deviceScaleFactor: 1,
    mobile: false,
    // The value that puppeteer uses for a page that is not turned.
    screenOrientation: { angle: 0, type: "portraitPrimary" },
    dontSetVisibleSize: true,
  });
}

/** Prepares every page before use: a DevTools session, the viewport and the user agent. */
export async function setUpPage(
  page: Page,
  userAgent: string,
): Promise<{ session: CDPSession; frameId: string }> {
  // Puppeteer counts what is in flight by asking, at each event, of each request: 5,000 images held us for 5 s.
  page.removeAllListeners("request");
  const session = await page.createCDPSession();
  const [{ frameTree }] = await Promise.all([
    session.send("Page.getFrameTree"),
    layOut(page),
    page.setUserAgent({ userAgent }),
    page.setBypassServiceWorker(true),
  ]);
  return { session, frameId: frameTree.frame.id };
}

/** The context of a page, as far as the page needs it. */
interface OwnContext {
  readonly egress: EgressProxy;
  readonly lost: AbortSignal;
  /** Makes the context known to its proxy. */
  authorize(): Promise<void>;
}

export class ContextPage {
  readonly page: Page;
  /** A DevTools session of our own beside puppeteer's. */
  readonly session: CDPSession;
  /** Aborts when the page, its context or its browser is gone, with the error that says so. */
  readonly lost: AbortSignal;
  /** Id of the main frame, which stays the same across navigations. */
  readonly frameId: string;
  readonly #context: OwnContext;

  static async prepare(
    page: Page,
    { context, userAgent }: { context: OwnContext; userAgent: string },
  ): Promise<ContextPage> {
    return new ContextPage({ page, context, ...(await setUpPage(page, userAgent)) });
  }

  /** Only `RenderContext.openPage` calls this. */
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
    const gone = new AbortController();
    this.lost = AbortSignal.any([context.lost, gone.signal]);
    const lose = (how: string) =>
      gone.abort(new ActorError("browser_crashed", `Cannot render the page: ${how}`));
    page.on("error", () => lose("it made its renderer crash"));
    page.on("close", () => lose("it closed itself"));
    // A dialog holds the page until somebody answers.
    page.on("dialog", (dialog) => {
      dialog.dismiss().catch(() => {
        // The page went first.
      });
    });
  }

  get egress(): EgressProxy {
    return this.#context.egress;
  }

  /** Returns the expression's value, evaluated beside the page's own scripts. */
  evaluate(expression: string): Promise<unknown> {
    return evaluateApart(this, expression);
  }

  /** Makes the context known to its proxy. */
  authorize(): Promise<void> {
    return this.#context.authorize();
  }
}
