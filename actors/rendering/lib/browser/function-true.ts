/** Calls a function of the caller in the page repeatedly, until it returns a true value. */

import type { Page } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { WaitForFunction } from "../../../../schemas/rendering/http/page-parameters.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { ProtocolError } from "./driver-parts.ts";
import { sessionOf } from "./page-session.ts";

/** Maximum characters of the function's error message that a refusal quotes: about one sentence. */
const THROWN_CHARS_MAX = 200;

/** Rejects with `wait_timed_out` after the timeout. The message quotes the last error that the function threw. */
export async function functionTrue(
  page: Page,
  { function: text, timeout: ms, polling }: WaitForFunction,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  const session = sessionOf(page);
  // The caller's text is an expression. If its value is a function, the function is called.
  const expression = `(async () => {
    const value = (${text}\n);
    return Boolean(await (typeof value === "function" ? value() : value));
  })()`;
  let thrown = "";
  const error = () =>
    new ActorError("wait_timed_out", `Cannot wait: the function was not true in ${ms} ms${thrown}`);
  await within({ ms, error, signal, clock }, async (limited) => {
    await checkSyntax();
    while (!limited.aborted && !(await isTrue())) await clock.wait(polling, limited);
  });

  async function checkSyntax(): Promise<void> {
    const compiled = { expression, sourceURL: "", persistScript: false };
    const { exceptionDetails } = await session.send("Runtime.compileScript", compiled);
    if (exceptionDetails === undefined) return;
    const pointer = "/waitForFunction/function";
    const message = `Expected an expression or a function: ${said(exceptionDetails)}`;
    throw new ActorError(
      "invalid_request",
      "Cannot wait: the function is not a JavaScript function",
      {
        faults: [{ pointer, message }],
      },
    );
  }

  async function isTrue(): Promise<boolean> {
    try {
      const options = { awaitPromise: true, returnByValue: true };
      const evaluated = await session.send("Runtime.evaluate", { expression, ...options });
      const { result, exceptionDetails } = evaluated;
      thrown = exceptionDetails === undefined ? "" : `; it threw ${said(exceptionDetails)}`;
      return result.value === true && exceptionDetails === undefined;
    } catch (cause) {
      // The page is navigating to another document, in which the function may become true.
      if (cause instanceof ProtocolError && cause.name === "ProtocolError") return false;
      throw cause;
    }
  }
}

interface Thrown {
  text: string;
  exception?: { description?: string; value?: unknown };
}

function said({ text, exception }: Thrown): string {
  const words = exception?.description ?? String(exception?.value ?? text);
  return (words.split("\n")[0] ?? "").slice(0, THROWN_CHARS_MAX);
}
