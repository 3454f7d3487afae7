/** Performs the actions of the request on a page, such as clicks, before the result is read. */
import type { ElementHandle, KeyInput } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { PageAction } from "../../../../schemas/rendering/http/page-world.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { checkSelector } from "../../lib/browser/css-selector.ts";
import type { Limits } from "../../lib/browser/load-page.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

type Of<T extends PageAction["type"]> = Extract<PageAction, { type: T }>;

/**
 * Performs the actions in order. Rejects with a refusal that names the action that failed. With `isBestAttempt`,
 * continues with the next action after a timeout or a missing option.
 */
export async function doActions(
  context: RenderContext,
  actions: readonly PageAction[],
  { signal, clock, isBestAttempt }: Limits & { isBestAttempt: boolean },
): Promise<void> {
  for (const [index, action] of actions.entries()) {
    const { timeout: ms, type } = action;
    if (type === "waitForTimeout") {
      await clock.wait(ms, signal);
      signal.throwIfAborted();
      continue;
    }
    const error = () => failure(index, type, `it took longer than ${ms} ms`);
    try {
      await within({ ms, error, signal, clock }, (limited) =>
        doAction(context, action, { index, signal: limited }),
      );
    } catch (cause) {
      const isWait = cause instanceof ActorError && cause.code === "wait_timed_out";
      if (!isBestAttempt || signal.aborted || !isWait) throw cause;
    }
  }
}

async function doAction(
  context: RenderContext,
  action: Exclude<PageAction, Of<"waitForTimeout">>,
  { index, signal }: { index: number; signal: AbortSignal },
): Promise<void> {
  const { page } = context;
  const { type, selector } = action;
  using element = selector === undefined ? undefined : await found(selector);
  switch (type) {
    case "click":
      return element ? await element.click() : await page.mouse.click(action.x ?? 0, action.y ?? 0);
    case "type":
      return await element?.type(action.text);
    case "press":
      await element?.focus();
      return await press(action.key);
    case "scroll":
      if (element) await element.scrollIntoView();
      else {
        await context.evaluate(
          `scrollTo({ left: ${action.x ?? 0}, top: ${action.y ?? 0}, behavior: "instant" })`,
        );
      }
      // A page is notified of a scroll only with its next frame.
      await context.evaluate(NEXT_FRAME);
      return;
    case "select": {
      const chosen = await element?.select(action.value);
      if (chosen?.length === 0) throw failure(index, type, `no option "${action.value}" is there`);
      return;
    }
    case "waitForSelector":
      return;
    default:
      action satisfies never;
  }

  async function found(wanted: string): Promise<ElementHandle> {
    await checkSelector(context, wanted, `/actions/${index}/selector`);
    // An element that is waited for, scrolled to or selected from need not be visible. For all other actions it must
    // be.
    const visible = type !== "waitForSelector" && type !== "scroll" && type !== "select";
    const handle = await page.waitForSelector(wanted, { visible, timeout: 0, signal });
    if (handle === null) throw failure(index, type, `no element "${wanted}" is there`);
    return handle;
  }

  async function press(key: string): Promise<void> {
    try {
      await page.keyboard.press(key as KeyInput);
    } catch (cause) {
      if (!(cause instanceof Error && cause.message.startsWith("Unknown key"))) throw cause;
      const fault = { pointer: `/actions/${index}/key`, message: "Expected a key, as in Enter" };
      const text = `Cannot do action ${index} (${type}): the key is unknown`;
      throw new ActorError("invalid_request", text, { faults: [fault] });
    }
  }
}

function failure(index: number, type: string, reason: string): ActorError {
  return new ActorError("wait_timed_out", `Cannot do action ${index} (${type}): ${reason}`);
}

/** An expression for the page. Resolves when the page has drawn a frame, or after a second if it draws none. */
const NEXT_FRAME = `new Promise((resolve) => {
  setTimeout(resolve, 1_000);
  requestAnimationFrame(() => requestAnimationFrame(resolve));
})`;
