/** A further page of a browser context, for work whose pages share what sites keep. */
import type { CDPSession, Page } from "puppeteer-core";
import { ActorError } from "../../schemas/errors.ts";
import type { EgressProxy } from "../egress/egress-proxy.ts";
import { evaluateApart } from "./isolated-world.ts";
import type { RenderContext } from "./render-context.ts";

const VIEWPORT = { width: 1_920, height: 1_080 };

export class ContextPage {
  readonly page: Page;
  /** A DevTools session of our own beside puppeteer's. */
  readonly session: CDPSession;
  /** Aborts when the page, its context or its browser is gone, with the error that says so. */
  readonly lost: AbortSignal;
  /** Of the page itself, which keeps it wherever it goes. */
  readonly frameId: string;
  readonly #context: RenderContext;

  static async prepare(
    page: Page,
    { context, userAgent }: { context: RenderContext; userAgent: string },
  ): Promise<ContextPage> {
    // Puppeteer counts what is in flight by asking, at each event, of each request.
    page.removeAllListeners("request");
    const session = await page.createCDPSession();
    const [{ frameTree }] = await Promise.all([
      session.send("Page.getFrameTree"),
      page.setViewport(VIEWPORT),
      page.setUserAgent({ userAgent }),
      page.setBypassServiceWorker(true),
    ]);
    return new ContextPage({ page, session, context, frameId: frameTree.frame.id });
  }

  /** Use `RenderContext.openPage`. */
  constructor(parts: {
    page: Page;
    session: CDPSession;
    context: RenderContext;
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

  /** As `RenderContext.evaluate`. */
  evaluate(expression: string): Promise<unknown> {
    return evaluateApart(this, expression);
  }

  /** Makes the context known to its proxy. */
  authorize(): Promise<void> {
    return this.#context.authorize();
  }
}
