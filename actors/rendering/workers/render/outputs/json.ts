/** Extracts data from a page by AI models. They are slow, so the page is released before the models are queried. */
import { ActorError } from "../../../../../schemas/errors.ts";
import type { JsonRequest } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { JsonExtractor, JsonQuestion } from "../../../lib/ai/json-extractor.ts";
import type { ThreadCaller } from "../../../lib/threads/thread-pool.ts";
import { type Converter, convert } from "./markdown.ts";
import type { Output, ReadAnswer } from "./output.ts";
import { readText } from "./read-text.ts";

export type Extractor = Pick<JsonExtractor, "extract" | "faultOf">;

export function jsonOutput(
  converter: Converter,
  extractor: Extractor,
): Output<JsonRequest, ReadAnswer<unknown>> {
  return async ({ context }, parameters) => {
    const page = await readText(context);
    return async (caller) => {
      const text = await convert(converter, page, { parameters, caller });
      const { url } = page;
      const outcome = await extractor.extract({ url, text }, questionOf(parameters), caller);
      if (outcome.kind === "failed") throw new ActorError("json_not_extracted", outcome.reason);
      return { result: JSON.parse(outcome.json) };
    };
  };
}

/** Throws a refusal if no model can answer the question, before a page is loaded for it. */
export async function checkQuestion(
  extractor: Extractor,
  parameters: JsonRequest,
  caller: ThreadCaller,
): Promise<void> {
  const fault = await extractor.faultOf(questionOf(parameters), caller);
  if (fault === undefined) return;
  const pointer = { schema: "/response_format/json_schema", customAi: "/custom_ai" }[fault.field];
  const faults = [{ pointer, message: fault.message }];
  throw new ActorError("invalid_request", `Cannot extract JSON: ${fault.message}`, { faults });
}

function questionOf({ prompt, response_format, custom_ai }: JsonRequest): JsonQuestion {
  return { prompt, schema: response_format?.json_schema, customAi: custom_ai };
}
