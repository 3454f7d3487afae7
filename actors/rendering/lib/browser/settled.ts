/**
 * Waits until a page has settled: after its load event there is a short time in which no request is open, the
 * document does not change, and no animation runs.
 */
import type { Page } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import {
  LOAD_REST_MS,
  LOAD_STALLED_MS,
  LOOK_MS,
  QUIET_AFTER_CHANGE_MS,
  QUIET_MS,
  QUIET_WITH_WORKERS_MS,
} from "../../../../schemas/rendering/limits.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import { DRAWING_SAMPLE, DRAWING_SAMPLE_MS, MOVING, STILL } from "./drawing-settled.ts";
import { patiently } from "./patiently.ts";
import type { RenderContext } from "./render-context.ts";
import { type RequestsInFlight, STOOD_STILL_MS } from "./wait-for-quiet.ts";

type Observed = Pick<RenderContext, "page" | "evaluate">;

interface Limits {
  signal: AbortSignal;
  clock: Clock;
}

/** The state of the document at one sample. */
interface DocumentState {
  isLoaded: boolean;
  /** The document contains no script and no other active content, so only requests that it has sent can change it. */
  isStatic: boolean;
  /** Milliseconds since the last change of the document's elements, attributes or texts. */
  idleMs: number;
  hasChanged: boolean;
  drawn: string;
}

/**
 * Resolves when the page has settled, at most `settleMs` after its load event. If requests hang, the load event may
 * not fire; that is no failure.
 */
export async function settled(
  context: Observed,
  { requests, settleMs, ...limits }: Limits & { requests: RequestsInFlight; settleMs: number },
): Promise<void> {
  const first = await loaded(context, requests, limits);
  if (first?.isStatic && requests.count === 0) return;
  await patiently({ ...limits, ms: settleMs }, async (signal) => {
    const limited = { ...limits, signal };
    if (first?.isStatic && (await staysStatic(context, requests, limited))) return;
    await quiet(context, requests, limited);
  });
}

/**
 * Waits a moment for the last requests of a loaded static page, whose ends may be reported after its load event.
 * Returns whether they have ended and the page is still static: a style sheet may have started an animation.
 */
async function staysStatic(
  context: Observed,
  requests: RequestsInFlight,
  limits: Limits,
): Promise<boolean> {
  if (!(await requests.waitForNone({ ms: DRAWING_SAMPLE_MS, ...limits }))) return false;
  const state = await stateOf(context, limits);
  return state?.isStatic === true && requests.count === 0;
}

/**
 * Resolves to the state at the load event; undefined if requests stalled before that event, or after LOAD_REST_MS.
 */
async function loaded(
  context: Observed,
  requests: RequestsInFlight,
  { signal, clock }: Limits,
): Promise<DocumentState | undefined> {
  const loading = new AbortController();
  const load = () => loading.abort(OVER);
  context.page.on("load", load);
  try {
    const beganAt = clock.monotonic();
    for (let loadMs = STATIC_LOAD_MS; ; loadMs = 0) {
      const state = await stateOf(context, { signal, clock }, loadMs);
      signal.throwIfAborted();
      if (state?.isLoaded) return state;
      const waitedMs = clock.monotonic() - beganAt;
      const stalledMs = LOAD_STALLED_MS - Math.min(requests.unchangedMs(), waitedMs);
      if (stalledMs <= 0 || waitedMs >= LOAD_REST_MS) return undefined;
      if (loading.signal.aborted) await clock.wait(DRAWING_SAMPLE_MS, signal);
      else await clock.wait(stalledMs, AbortSignal.any([loading.signal, signal]));
    }
  } finally {
    context.page.off("load", load);
  }
}

async function quiet(
  context: Observed,
  requests: RequestsInFlight,
  { signal, clock }: Limits,
): Promise<void> {
  const beganAt = clock.monotonic();
  let quietSince = beganAt;
  let sampledAt = beganAt;
  let drawnBefore: string | undefined;
  while (!signal.aborted) {
    const state = await stateOf(context, { signal, clock });
    const now = clock.monotonic();
    if (now - sampledAt > STOOD_STILL_MS) quietSince = now;
    sampledAt = now;
    if (state === undefined) {
      // The page is navigating to another document.
      await clock.wait(DRAWING_SAMPLE_MS, signal);
      continue;
    }
    const { drawn } = state;
    const isStill = drawn === STILL || (drawn !== MOVING && drawn === drawnBefore);
    drawnBefore = drawn;
    const neededMs = quietMsOf(context.page, state.hasChanged || requests.changedSince(beganAt));
    // Actions shortly before this call may still have effects on the page, so the quiet time starts at the earliest
    // with this call. It starts again after a time in which the machine stood still.
    const quietMs = Math.min(state.idleMs, requests.quietMs(), now - quietSince);
    if (isStill && quietMs >= neededMs) return;
    const missingMs = Math.max(neededMs - quietMs, isStill ? 0 : DRAWING_SAMPLE_MS);
    await clock.wait(Math.min(missingMs, DRAWING_SAMPLE_MS), signal);
  }
}

/**
 * Returns the quiet time after which a page counts as settled. It is longer after a change, because the page may
 * change again, and with workers, whose activity cannot be seen.
 */
function quietMsOf(page: Page, hasChanged: boolean): number {
  if (page.workers().length > 0) return QUIET_WITH_WORKERS_MS;
  return hasChanged ? QUIET_AFTER_CHANGE_MS : QUIET_MS;
}

/**
 * Returns undefined while the page navigates to another document, because some evaluations never get a reply then.
 * If the document is static and still loads, the state is that at its load event, or after `loadMs`.
 */
async function stateOf(
  context: Observed,
  limits: Limits,
  loadMs = 0,
): Promise<DocumentState | undefined> {
  let state: DocumentState | undefined;
  try {
    await patiently({ ...limits, ms: LOOK_MS }, async () => {
      state = (await context.evaluate(stateExpression(loadMs))) as DocumentState;
    });
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "page_navigated_away")) throw error;
  }
  return state;
}

/**
 * How long the first sample of a static document waits for its load event: half of LOOK_MS. A second sample after that
 * event would take two more round trips, 5 % of a small PDF by address.
 */
const STATIC_LOAD_MS = LOOK_MS / 2;

// Runs in the page. The observer stays in the isolated world after the first sample. It observes the document, and
// the open shadow roots and same-site frames that exist at a sample.
const stateExpression = (loadMs: number) => `(async () => {
  const watch = globalThis.trunklineWatch ??= (() => {
    const watch = { changedAt: performance.now(), changes: 0, roots: new WeakSet() };
    watch.observer = new MutationObserver(() => {
      watch.changedAt = performance.now();
      watch.changes += 1;
    });
    return watch;
  })();
  const look = (root) => {
    if (!watch.roots.has(root)) {
      watch.roots.add(root);
      watch.observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    }
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) look(element.shadowRoot);
      if (element.localName === "iframe" && element.contentDocument) look(element.contentDocument);
    }
  };
  look(document);
  const acts = "script, iframe, frame, object, embed, [onload], [onerror], video, audio, canvas, template[shadowrootmode], " +
    "img[loading=lazy i], meta[http-equiv=refresh i]";
  const looksStatic = () => document.querySelector(acts) === null && document.getAnimations().length === 0;
  if (${loadMs} > 0 && document.readyState !== "complete" && looksStatic()) {
    await new Promise((resolve) => {
      addEventListener("load", resolve, { once: true });
      setTimeout(resolve, ${loadMs});
    });
  }
  const isLoaded = document.readyState === "complete";
  // A style sheet that arrived meanwhile may have started an animation.
  const isStatic = looksStatic();
  const drawn = isStatic ? "${STILL}" : await ${DRAWING_SAMPLE};
  const idleMs = performance.now() - watch.changedAt;
  return { isLoaded, isStatic, idleMs, hasChanged: watch.changes > 0, drawn };
})()`;
