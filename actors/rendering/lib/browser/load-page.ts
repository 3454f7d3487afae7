/** Loads a page, adds the tags of the request, and waits for the conditions of the request. */

import { ActorError } from "../../../../schemas/errors.ts";
import { GOTO_TIMEOUT_MS } from "../../../../schemas/limits.ts";
import type { LoadEvent } from "../../../../schemas/rendering/http/page-parameters.ts";
import { SETTLE_MS } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { checkSelector } from "./css-selector.ts";
import { definedOf } from "./defined-of.ts";
import { PuppeteerError } from "./driver-parts.ts";
import { functionTrue } from "./function-true.ts";
import { MainDocument } from "./main-document.ts";
import { netErrorOf } from "./navigation-errors.ts";
import type { PageRequest } from "./prepare-page.ts";
import type { RenderContext } from "./render-context.ts";
import { settled } from "./settled.ts";
import { RequestsInFlight } from "./wait-for-quiet.ts";

export interface Limits {
  signal: AbortSignal;
  clock: Clock;
  /** Whether the loaded document is good enough, so that later waits may fail as with `bestAttempt`. */
  isEnough?: () => boolean;
  /** The event to wait for when the caller names none. */
  waitUntil?: LoadEvent;
}

const NO_GOTO_OPTIONS: NonNullable<PageRequest["gotoOptions"]> = {
  timeout: GOTO_TIMEOUT_MS,
  settleTimeout: SETTLE_MS,
};

/**
 * Loads the page and returns the watch over its main document. Dispose of the watch after use, and call its `check`
 * before the page is used, because a page may navigate again. With `bestAttempt` a wait that times out is no failure.
 * A document that cannot be loaded is always a failure.
 */
export async function loadPage(
  context: Pick<RenderContext, "page" | "frameId" | "egress" | "evaluate">,
  parameters: PageRequest,
  { signal, clock, isEnough = () => false, waitUntil: preset = "domcontentloaded" }: Limits,
): Promise<MainDocument> {
  const { page } = context;
  using watching = new DisposableStack();
  const document = watching.use(new MainDocument(context, parameters));
  const requests = new RequestsInFlight(page, clock);
  const isBestAttempt = () => parameters.bestAttempt === true || isEnough();

  await load();
  document.check();
  const tagMs = { ms: parameters.gotoOptions?.timeout ?? GOTO_TIMEOUT_MS, signal, clock };
  // Tags are added in the order of the request, because a later rule may override an earlier one.
  for (const tag of parameters.addStyleTag ?? []) {
    await attempt(() => addTag("style", tagMs, () => page.addStyleTag(definedOf(tag))));
  }
  // Without JavaScript, a script tag has no effect and fires no event to wait for.
  const scripts = parameters.setJavaScriptEnabled === false ? [] : (parameters.addScriptTag ?? []);
  for (const tag of scripts) {
    await attempt(() => addTag("script", tagMs, () => page.addScriptTag(definedOf(tag))));
  }
  await attempt(() => waitForSelector(context, parameters, { signal, clock }));
  await attempt(async () => {
    const { waitForFunction } = parameters;
    if (waitForFunction) await functionTrue(page, waitForFunction, { signal, clock });
  });
  if (parameters.waitForTimeout !== undefined) {
    await clock.wait(parameters.waitForTimeout, signal);
    signal.throwIfAborted();
  }
  // From here on the caller must dispose of the watch.
  watching.move();
  return document;

  async function load(): Promise<void> {
    const { gotoOptions = NO_GOTO_OPTIONS } = parameters;
    const { waitUntil = preset, timeout, settleTimeout, ...options } = gotoOptions;
    const { events, requestsMax, isSettled } = waitsOf(waitUntil);
    const error = () =>
      new ActorError(
        "navigation_timed_out",
        `Cannot load the page: it took longer than ${timeout} ms`,
      );
    try {
      await within({ ms: timeout, error, signal, clock }, async (limited) => {
        // Puppeteer's own timeout is off; the signal ends its wait.
        const wait = { waitUntil: events, timeout: 0, signal: limited };
        const { url, html } = parameters;
        if (url !== undefined) await page.goto(url, { ...definedOf(options), ...wait });
        else await page.setContent(html ?? "", wait);
        document.check();
        await document.checkContent(parameters.failOnStatus);
        if (requestsMax !== undefined)
          await requests.quiet(requestsMax, { signal: limited, clock });
        const limits = { signal: limited, clock, settleMs: settleTimeout };
        if (isSettled) await settled(context, { ...limits, requests });
      });
    } catch (cause) {
      const netError = netErrorOf(cause);
      if (netError !== undefined) throw document.failure(netError, parameters.url ?? "");
      const here = document.arrived || parameters.html !== undefined;
      if (!(isBestAttempt() && here && isTimeout(cause)) || signal.aborted) throw cause;
    }
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

async function addTag(
  what: string,
  limits: { ms: number; signal: AbortSignal; clock: Clock },
  add: () => Promise<unknown>,
): Promise<void> {
  const took = `it took longer than ${limits.ms} ms`;
  const error = () => new ActorError("wait_timed_out", `Cannot add ${what} tag: ${took}`);
  try {
    await within({ ...limits, error }, add);
  } catch (cause) {
    if (cause instanceof ActorError || cause instanceof PuppeteerError) throw cause;
    throw new ActorError("network_failed", `Cannot add ${what} tag: it could not be loaded`);
  }
}

async function waitForSelector(
  context: Pick<RenderContext, "page" | "evaluate">,
  { waitForSelector: wanted }: PageRequest,
  limits: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  if (wanted === undefined) return;
  const { selector, timeout: ms, visible = false, hidden = false } = wanted;
  const error = () =>
    new ActorError("wait_timed_out", `Cannot find "${selector}": it did not come in ${ms} ms`);
  await within({ ...limits, ms, error }, async (signal) => {
    await checkSelector(context, selector, "/waitForSelector/selector");
    await context.page.waitForSelector(selector, { visible, hidden, timeout: 0, signal });
  });
}

/** Load events for puppeteer, and how many requests may be in flight after them. */
function waitsOf(waitUntil: LoadEvent | readonly LoadEvent[]) {
  const wanted = new Set([waitUntil].flat());
  const requestsMax = wanted.has("networkidle0") ? 0 : wanted.has("networkidle2") ? 2 : undefined;
  const events: ("load" | "domcontentloaded")[] = [];
  const isSettled = wanted.has("settled");
  // A page may settle without its load event, so the wait for `settled` does not depend on that event.
  if (wanted.has("domcontentloaded") || isSettled) events.push("domcontentloaded");
  if (wanted.has("load") || requestsMax !== undefined) events.push("load");
  return { events, requestsMax, isSettled };
}

function isTimeout(error: unknown): boolean {
  return error instanceof ActorError && error.code === "navigation_timed_out";
}
