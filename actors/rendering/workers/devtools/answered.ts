/** Answers a request of a gateway. An `ActorError` is sent over the bus as a refusal. */
import type { z } from "zod";
import { ActorError } from "../../../../schemas/errors.ts";
import { parseJson } from "../../../../schemas/parse-json.ts";
import type { WorkerAnswer } from "../../../../schemas/rendering/devtools-worker.ts";

/**
 * Returns the reply or the refusal as JSON. Rejects for all other errors: the caller logs them and sends no response.
 */
export async function answered<S extends z.ZodType>(
  schema: S,
  payload: string,
  answer: (request: z.output<S>) => unknown,
): Promise<string> {
  try {
    const reply = await answer(schema.parse(parseJson(payload)));
    return JSON.stringify({ reply } satisfies WorkerAnswer);
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    const { code, message } = error;
    return JSON.stringify({ refusal: { code, message } } satisfies WorkerAnswer);
  }
}
