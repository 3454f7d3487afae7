/** Detects that the renderer of a page has ended, and why. */
import type { Page, Protocol } from "puppeteer-core";
import { sessionOf } from "./page-session.ts";

/** `memory`: the page exceeded its memory limit, so another attempt would end the same way. */
export type CrashCause = "crash" | "memory";

/** Chromium's status of a renderer that was killed: by our memory monitor or by the kernel. */
const KILLED = new Set(["killed", "oom", "oom killed"]);

/**
 * Calls `crashed` when the renderer ends. The browser's own session reports the cause; the page's session does not,
 * so its `error` event is not used. `targetId` is the id of the page, which equals the id of its main frame.
 */
export function onPageCrash(
  page: Page,
  targetId: string,
  crashed: (cause: CrashCause) => void,
): void {
  const connection = sessionOf(page).connection();
  const report = (event: Protocol.Target.TargetCrashedEvent) => {
    if (event.targetId === targetId) crashed(KILLED.has(event.status) ? "memory" : "crash");
  };
  connection?.on("Target.targetCrashed", report);
  page.once("close", () => connection?.off("Target.targetCrashed", report));
}
