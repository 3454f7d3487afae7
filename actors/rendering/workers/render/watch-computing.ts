/**
 * Detects whether a page computes or only waits for the network, so that a waiting page does not prevent another page
 * from computing.
 */
import type { CDPSession } from "puppeteer-core";
import type { Clock } from "../../../runtime/lib/clock.ts";

/** Interval between checks whether a page computes. Most pages end before the first check. */
const COMPUTING_CHECK_MS = 250;
/**
 * If the main thread of a page responds later than this, the page computes. An idle main thread responds within a few
 * milliseconds.
 */
const COMPUTING_ANSWER_MS = 50;

/**
 * Reports whether the page waits or computes, until the signal aborts. Until the first report a page counts as
 * computing. A page waits if its main thread responded in time to the last two checks. (`Performance.getMetrics`
 * would tell how long the thread worked, but it is empty in headless shells.) The first check comes after
 * COMPUTING_CHECK_MS, so most pages end without one.
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

/** Whether the main thread responds. False if the document was replaced meanwhile or the page is closed. */
async function answers(session: Pick<CDPSession, "send">): Promise<boolean> {
  try {
    await session.send("Runtime.evaluate", { expression: "0", returnByValue: true });
    return true;
  } catch {
    // The error is ignored: if the page is closed, its task ends for that reason.
    return false;
  }
}
