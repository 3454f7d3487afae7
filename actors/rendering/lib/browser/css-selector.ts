/** Checks that a text is a valid selector. Puppeteer would wait for an invalid selector until the timeout. */
import { ActorError } from "../../../../schemas/errors.ts";
import type { RenderContext } from "./render-context.ts";

/** Puppeteer's own kinds of selectors, which browsers do not know. */
const PUPPETEERS = /^(?:aria|pierce|text|xpath)\/|::-p-|>>>/;

/** Throws a refusal that names the field if the selector is invalid. */
export async function checkSelector(
  context: Pick<RenderContext, "evaluate">,
  selector: string,
  pointer: string,
): Promise<void> {
  if (PUPPETEERS.test(selector)) return;
  const select = `document.createDocumentFragment().querySelector(${JSON.stringify(selector)})`;
  if ((await context.evaluate(`try { ${select}; true } catch { false }`)) === true) return;
  const fault = { pointer, message: "Expected a CSS selector" };
  throw new ActorError(
    "invalid_request",
    "Cannot select an element: the selector is not valid CSS",
    {
      faults: [fault],
    },
  );
}
