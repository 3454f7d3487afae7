/**
 * A page in its own context, used by one task. It measures the browser time and converts the reasons for its end to
 * errors for the caller.
 */

import { ActorError } from "../../../../schemas/errors.ts";
import type { PageReport } from "../../../../schemas/rendering/http/page-report.ts";
import { SETTLE_MS } from "../../../../schemas/rendering/limits.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import { Timeout } from "../../../runtime/lib/time-limit.ts";
import { BrowserDiedError } from "../../lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { ProtocolError } from "../../lib/browser/driver-parts.ts";
import { type Limits, loadPage } from "../../lib/browser/load-page.ts";
import type { MainDocument } from "../../lib/browser/main-document.ts";
import { NavigationCount } from "../../lib/browser/navigation-count.ts";
import { hasNavigatedAway } from "../../lib/browser/navigation-errors.ts";
import { preparePage } from "../../lib/browser/prepare-page.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";
import { settled } from "../../lib/browser/settled.ts";
import { RequestsInFlight } from "../../lib/browser/wait-for-quiet.ts";
import type { Hold } from "./account-time.ts";
import { type OpenedRequest, openFiles } from "./open-files.ts";
import { doActions } from "./page-actions.ts";
import { PageRecord } from "./record-page.ts";
import { watchComputing } from "./watch-computing.ts";

/**
 * If a page times out after it has replaced its document this often, the cause is not slowness: the page reloads or
 * navigates endlessly.
 */
const PAGE_REPLACEMENTS_MAX = 5;

/** The owner of work that names no account. */
export const NO_ACCOUNT = "";

/** The operation on the page, as a verb for error messages. */
export type Action = "print" | "capture" | "read";

export interface PageTask {
  action: Action;
  /** The account whose page it is. Its pages share the limits for lookups of names and for pages of Markdown. */
  account?: string | undefined;
  /**
   * When the page must be done, by the clock that does not jump. Without it, only the signal ends the work: the host
   * of the worker aborts it at the time limit of a task, and the caller cancels it at its own deadline.
   */
  endsAt?: number | undefined;
  /** Called when the page gets a browser. The returned function is called when the page leaves it. */
  hold?: Hold | undefined;
  /** Called with true when the page starts to wait only for the network, and with false when it computes again. */
  setWaiting?: ((isWaiting: boolean) => void) | undefined;
}

export class HeldPage implements AsyncDisposable {
  readonly context: RenderContext;
  /** Limits whose signal aborts when the task is cancelled or the page is lost. */
  readonly limits: Limits;
  /** Aborts when the task is cancelled or its deadline passes, but not when the page is lost: for work after `leave`. */
  readonly given: AbortSignal;
  readonly #account: string;
  readonly #action: Action;
  readonly #navigations: NavigationCount;
  readonly #stopWatching: () => void;
  readonly #endHold: () => void;
  readonly #time: Stopwatch;
  readonly #resources: AsyncDisposableStack;
  #record: PageRecord | undefined;
  #loadMs = 0;
  #hasLeft = false;

  /** Opens a page in a new context of the pool. `signal` cancels the task. */
  static async open(
    pool: BrowserPool,
    { action, account, endsAt, hold, setWaiting }: PageTask,
    { signal, clock }: { signal: AbortSignal; clock: Clock },
  ): Promise<HeldPage> {
    await using resources = new AsyncDisposableStack();
    const error = () => refusal("deadline_exceeded", action, "the deadline has passed");
    const deadline = resources.use(deadlineAt(endsAt, { error, clock }));
    const given = AbortSignal.any([cancelledBy(signal, action), deadline.signal]);
    const context = resources.use(await pool.newContext(given));
    if (account !== undefined) context.egress.countLookupsFor(account);
    const endHold = hold?.() ?? (() => {});
    resources.defer(endHold);
    const ended = AbortSignal.any([given, context.lost]);
    // When the task is cancelled, its deadline passes or the page is lost, the context is released immediately,
    // whatever the page is doing.
    if (ended.aborted) context.release();
    else ended.addEventListener("abort", () => context.release(), { once: true });
    const limits = { signal: ended, clock };
    const navigations = resources.use(new NavigationCount(context));
    const left = new AbortController();
    const stopWatching = () => left.abort(OVER);
    resources.defer(stopWatching);
    if (setWaiting) {
      const watched = { signal: AbortSignal.any([ended, left.signal]), clock };
      void watchComputing(context.session, watched, setWaiting);
    }
    return new HeldPage({
      ...{ context, limits, given, action, navigations, stopWatching, endHold },
      account: account ?? NO_ACCOUNT,
      resources: resources.move(),
    });
  }

  /** Use `open`. */
  constructor(parts: {
    context: RenderContext;
    limits: Limits;
    given: AbortSignal;
    account: string;
    action: Action;
    navigations: NavigationCount;
    /** Stops monitoring whether the page computes. */
    stopWatching: () => void;
    endHold: () => void;
    resources: AsyncDisposableStack;
  }) {
    this.context = parts.context;
    this.limits = parts.limits;
    this.given = parts.given;
    this.#account = parts.account;
    this.#action = parts.action;
    this.#navigations = parts.navigations;
    this.#stopWatching = parts.stopWatching;
    this.#endHold = parts.endHold;
    this.#resources = parts.resources;
    this.#time = new Stopwatch(parts.limits.clock);
  }

  /** Wall-clock milliseconds for which a browser has been in use so far. */
  get browserMs(): number {
    return this.#time.ms;
  }

  /** Loads the page, runs the actions of the request, and waits as the request demands; see `loadPage`. */
  async load(parameters: OpenedRequest): Promise<MainDocument> {
    if (parameters.report) this.#record = this.#resources.use(new PageRecord(this.context));
    await preparePage(this.context, parameters, { loadsNext: true });
    const limits = { ...this.limits, waitUntil: "settled" as const };
    const ofAccount = { ...this.limits, account: this.#account };
    const opened = await openFiles(this.context, parameters, ofAccount);
    const document = await loadPage(this.context, opened, limits);
    const { actions = [], bestAttempt: isBestAttempt = false } = parameters;
    if (actions.length > 0) {
      const requests = new RequestsInFlight(this.context.page, this.limits.clock);
      await doActions(this.context, actions, { ...this.limits, isBestAttempt });
      const settleMs = parameters.gotoOptions?.settleTimeout ?? SETTLE_MS;
      await settled(this.context, { ...this.limits, requests, settleMs });
    }
    this.#loadMs = this.browserMs;
    return document;
  }

  /** Returns the report about the page; undefined if the request wants none. */
  report({ status }: Pick<MainDocument, "status">): PageReport | undefined {
    if (this.#record === undefined) return undefined;
    const timings = { loadMs: this.#loadMs, browserMs: this.browserMs };
    return { ...this.#record.report(), status: status ?? null, timings };
  }

  /**
   * Runs the work and converts its errors to errors for the caller, with the browser time. After `leave`, the end of
   * the page explains no error, because the work no longer uses the page.
   */
  async explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#time.stop();
      const signal = this.#hasLeft ? this.given : this.limits.signal;
      const found = this.#hasLeft ? error : this.#refusalOf(error);
      // If the signal is aborted, its reason is the cause. Other errors are only a consequence.
      const cause = signal.aborted ? signal.reason : found;
      const { browserMs } = this;
      if (cause instanceof BrowserDiedError) {
        throw new BrowserDiedError(cause.message, { cause, browserMs });
      }
      if (!(cause instanceof ActorError)) throw cause;
      throw new ActorError(cause.code, cause.message, { ...cause.details, browserMs });
    }
  }

  /** Releases the page. The browser closes it in the background. */
  leave(): void {
    this.#hasLeft = true;
    this.#time.stop();
    this.#stopWatching();
    this.#endHold();
    this.context.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#time.stop();
    await this.#resources.disposeAsync();
  }

  #refusalOf(error: unknown): unknown {
    if (error instanceof ActorError) return this.#explainReloads(error);
    if (!(error instanceof Error)) return error;
    if (hasNavigatedAway(error)) {
      const left = refusal("page_navigated_away", this.#action, "it left while it was used");
      return this.#explainReloads(left);
    }
    const { page } = this.context;
    if (page.isClosed() || (error instanceof ProtocolError && error.name === "TargetCloseError")) {
      return refusal("browser_crashed", this.#action, "it closed itself");
    }
    return error;
  }

  /**
   * Returns the same refusal. If the page replaced its own document often enough, the refusal states that as its
   * reason.
   */
  #explainReloads(error: ActorError): ActorError {
    const { replacements } = this.#navigations;
    const least = LEAST_REPLACEMENTS[error.code] ?? Number.POSITIVE_INFINITY;
    if (replacements < least) return error;
    const times = replacements === 1 ? "once" : `${replacements} times`;
    const reason = `it reloads or navigates by itself; it has replaced its document ${times}`;
    return refusal(error.code, this.#action, reason);
  }
}

/** For each refusal: if the page has replaced its document at least this often, the refusal names the page as the cause. */
const LEAST_REPLACEMENTS: Partial<Record<ActorError["code"], number>> = {
  page_navigated_away: 1,
  // A page that navigates by script once or twice may still be merely slow.
  navigation_timed_out: PAGE_REPLACEMENTS_MAX,
};

/**
 * Returns our refusal for a page that Chromium cannot print or capture. Chromium uses one error code for all such
 * errors.
 */
export function refusedByBrowser(cause: unknown, action: Action): unknown {
  if (!(cause instanceof ProtocolError)) return cause;
  if (cause.name === "TargetCloseError" || cause.name === "ConnectionClosedError") return cause;
  return refusal("page_not_printable", action, cause.originalMessage || cause.message);
}

function refusal(code: ActorError["code"], action: Action, reason: string): ActorError {
  return new ActorError(code, `Cannot ${action} the page: ${reason}`);
}

/** Returns the timeout of a page that must be done at `endsAt`. Without such a time, it never aborts. */
export function deadlineAt(
  endsAt: number | undefined,
  { error, clock }: { error: () => ActorError; clock: Clock },
): { signal: AbortSignal } & Disposable {
  if (endsAt !== undefined) return new Timeout({ ms: endsAt - clock.monotonic(), error, clock });
  return { signal: new AbortController().signal, [Symbol.dispose]() {} };
}

/** Returns a signal that aborts with the caller's signal. Its reason is one of our errors. */
function cancelledBy(signal: AbortSignal, action: Action): AbortSignal {
  const cancelled = new AbortController();
  const cancel = () => {
    const { reason } = signal;
    const left = refusal("cancelled", action, "the caller has left");
    cancelled.abort(reason instanceof ActorError ? reason : left);
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return cancelled.signal;
}

/** Measures the time until `stop` is called. */
class Stopwatch {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #stoppedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Whole milliseconds, at least one, because a browser was in use. */
  get ms(): number {
    return Math.max(1, Math.round((this.#stoppedAt ?? this.#clock.monotonic()) - this.#startedAt));
  }

  stop(): void {
    this.#stoppedAt ??= this.#clock.monotonic();
  }
}
