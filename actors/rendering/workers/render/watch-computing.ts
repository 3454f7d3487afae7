/**
 * Watches whether a page computes or only waits for the network, so that one that waits keeps no other from
 * computing.
 */
import type { CDPSession } from "puppeteer-core";
import type { Clock } from "../../../runtime/lib/clock.ts";

/** How often a page is asked whether it computes; most pages end before the first time. */
const COMPUTING_CHECK_MS = 250;
/** A page whose main thread answers later than this computes: an idle one answers within some milliseconds. */
const COMPUTING_ANSWER_MS = 50;

/**
 * Reports what the page does until the signal aborts; a page counts as computing until it is known to wait. A page
 * waits if its main thread answered the last two questions at once. (`Performance.getMetrics`, which would say how
 * long the thread worked, is empty in headless shells.) The first question comes after COMPUTING_CHECK_MS, so most
 * pages end without one.
 */
export async function watchComputing(
  session: Pick<CDPSession, "send">,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
  setWaiting: (isWaiting: boolean) => void,
): Promise<void> {
  let answeredBefore = false;
  for (;;) {
    await clock.wait(COMPUTING_CHECK_MS, signal);
    if (signal.aborted) return;
    const late = clock.wait(COMPUTING_ANSWER_MS, signal).then(() => false);
    const answered = await Promise.race([answers(session), late]);
    if (signal.aborted) return;
    setWaiting(answered && answeredBefore);
    answeredBefore = answered;
  }
}

/** False where the document was replaced meanwhile, or the page has gone. */
async function answers(session: Pick<CDPSession, "send">): Promise<boolean> {
  try {
    await session.send("Runtime.evaluate", { expression: "0", returnByValue: true });
    return true;
  } catch {
    // A page that has gone ends its task by that.
    return false;
  }
}
