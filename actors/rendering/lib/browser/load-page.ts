/** Brings the page to the state its caller wants it in: loaded, completed with tags, waited for. */
import { PuppeteerError } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { GOTO_TIMEOUT_MS } from "../../../../schemas/limits.ts";
import type { LoadEvent } from "../../../../schemas/rendering/http/page-parameters.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { checkSelector } from "./css-selector.ts";
import { definedOf } from "./defined-of.ts";
import { MainDocument } from "./main-document.ts";
import { netErrorOf } from "./navigation-errors.ts";
import type { PageRequest } from "./prepare-page.ts";
import type { RenderContext } from "./render-context.ts";
import { RequestsInFlight } from "./wait-for-quiet.ts";

export interface Limits {
  signal: AbortSignal;
  clock: Clock;
  /** Whether the document that has come is to be had as with `bestAttempt`. */
  isEnough?: () => boolean;
}

const NO_GOTO_OPTIONS = { waitUntil: "domcontentloaded", timeout: GOTO_TIMEOUT_MS } as const;

/**
 * Returns the watch over the document, to be disposed of; call its `check` before the page is used, since a page may
 * navigate on. With `bestAttempt` a wait that fails is no failure. A document that cannot be had always is.
 */
export async function loadPage(
  context: Pick<RenderContext, "page" | "frameId" | "egress" | "evaluate">,
  parameters: PageRequest,
  { signal, clock, isEnough = () => false }: Limits,
): Promise<MainDocument> {
  const { page } = context;
  using watching = new DisposableStack();
  const document = watching.use(new MainDocument(context, parameters));
  const requests = new RequestsInFlight(page);
  const isBestAttempt = () => parameters.bestAttempt === true || isEnough();

  await load();
  document.check();
  // Both kinds in the order given, since a later rule may override an earlier one.
  for (const tag of parameters.addStyleTag ?? []) {
    await attempt(() => addTag("style", () => page.addStyleTag(definedOf(tag))));
  }
  // Without JavaScript a script tag does nothing, and there would be no event to wait for.
  const scripts = parameters.setJavaScriptEnabled === false ? [] : (parameters.addScriptTag ?? []);
  for (const tag of scripts) {
    await attempt(() => addTag("script", () => page.addScriptTag(definedOf(tag))));
  }
  await attempt(waitForSelector);
  if (parameters.waitForTimeout !== undefined) {
    await clock.wait(parameters.waitForTimeout, signal);
    signal.throwIfAborted();
  }
  // From here on its caller watches.
  watching.move();
  return document;

  async function load(): Promise<void> {
    const { waitUntil, timeout, ...options } = parameters.gotoOptions ?? NO_GOTO_OPTIONS;
    const { events, requestsMax } = waitsOf(waitUntil);
    const error = () =>
      new ActorError(
        "navigation_timed_out",
        `Cannot load the page: it took longer than ${timeout} ms`,
      );
    try {
      await within({ ms: timeout, error, signal, clock }, async (limited) => {
        // Puppeteer's own clock is off; the signal ends its wait.
        const wait = { waitUntil: events, timeout: 0, signal: limited };
        const { url, html } = parameters;
        if (url !== undefined) await page.goto(url, { ...definedOf(options), ...wait });
        else await page.setContent(html ?? "", wait);
        document.check();
        await document.checkContent(parameters.failOnStatus);
        if (requestsMax !== undefined)
          await requests.quiet(requestsMax, { signal: limited, clock });
      });
    } catch (cause) {
      const netError = netErrorOf(cause);
      if (netError !== undefined) throw document.failure(netError, parameters.url ?? "");
      const here = document.arrived || parameters.html !== undefined;
      if (!(isBestAttempt() && here && isTimeout(cause)) || signal.aborted) throw cause;
    }
  }

  async function addTag(what: string, add: () => Promise<unknown>): Promise<void> {
    const ms = parameters.gotoOptions?.timeout ?? GOTO_TIMEOUT_MS;
    const error = () =>
      new ActorError("wait_timed_out", `Cannot add ${what} tag: it took longer than ${ms} ms`);
    try {
      await within({ ms, error, signal, clock }, add);
    } catch (cause) {
      if (cause instanceof ActorError || cause instanceof PuppeteerError) throw cause;
      throw new ActorError("network_failed", `Cannot add ${what} tag: it could not be loaded`);
    }
  }

  async function waitForSelector(): Promise<void> {
    if (parameters.waitForSelector === undefined) return;
    const { selector, timeout: ms, visible = false, hidden = false } = parameters.waitForSelector;
    const error = () =>
      new ActorError("wait_timed_out", `Cannot find "${selector}": it did not come in ${ms} ms`);
    await within({ ms, error, signal, clock }, async (limited) => {
      await checkSelector(context, selector, "/waitForSelector/selector");
      await page.waitForSelector(selector, { visible, hidden, timeout: 0, signal: limited });
    });
  }

  async function attempt(wait: () => Promise<void>): Promise<void> {
    try {
      await wait();
    } catch (error) {
      const isWait = error instanceof ActorError && error.code !== "invalid_request";
      if (!isBestAttempt() || signal.aborted || !isWait) throw error;
    }
  }
}

/** Load events for puppeteer, and how many requests may be in flight after them. */
function waitsOf(waitUntil: LoadEvent | readonly LoadEvent[]) {
  const wanted = new Set([waitUntil].flat());
  const requestsMax = wanted.has("networkidle0") ? 0 : wanted.has("networkidle2") ? 2 : undefined;
  const events: ("load" | "domcontentloaded")[] = [];
  if (wanted.has("domcontentloaded")) events.push("domcontentloaded");
  if (wanted.has("load") || requestsMax !== undefined) events.push("load");
  return { events, requestsMax };
}

function isTimeout(error: unknown): boolean {
  return error instanceof ActorError && error.code === "navigation_timed_out";
}
