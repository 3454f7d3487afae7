/** Waits until a function of the caller, called in the page again and again, gives something true. */

import type { Page } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { WaitForFunction } from "../../../../schemas/rendering/http/page-parameters.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import { ProtocolError } from "./driver-parts.ts";
import { sessionOf } from "./page-session.ts";

/** Length of what the function threw in a refusal: a sentence. */
const THROWN_CHARS_MAX = 200;

/** Rejects with `wait_timed_out`, which names what the function threw last. */
export async function functionTrue(
  page: Page,
  { function: text, timeout: ms, polling }: WaitForFunction,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  const session = sessionOf(page);
  // An expression, or a function, which is called.
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
      // The page leads on to another document, where the function may be true.
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
