/**
 * The fields with which a request extracts data from a page by AI models: the prompt, the schema of the answer, and
 * the models.
 */
import { z } from "zod";
import { AiModel } from "../../crawl/ai-providers.ts";
import {
  CUSTOM_MODELS_MAX,
  JSON_PROMPT_CHARS_MAX,
  JSON_SCHEMA_BYTES_MAX,
} from "../../crawl/limits.ts";
import { fieldValue } from "../../http/header-fields.ts";
import { wholeJsonSchema } from "../../http/json-schema.ts";
import { shapedLike } from "../../http/shaped-like.ts";
import { HEADER_VALUE_CHARS_MAX } from "../../limits.ts";

const ANY_OBJECT: Record<string, unknown> = { type: "object" };

const JsonSchema = z
  .record(z.string(), z.unknown())
  .refine((schema) => Buffer.byteLength(JSON.stringify(schema)) <= JSON_SCHEMA_BYTES_MAX, {
    error: `Expected at most ${JSON_SCHEMA_BYTES_MAX} bytes`,
    abort: true,
  })
  .transform(wholeJsonSchema);

const ResponseFormat = z
  .strictObject(
    {
      type: z.literal("json_schema"),
      json_schema: JsonSchema.nullish().describe(
        'JSON Schema of the answer; shorthand as in {"properties":{"price":"number"}} will do. Any object when absent or null',
      ),
      schema: JsonSchema.nullish().describe("Alias of json_schema"),
    },
    {
      error: shapedLike({
        type: "json_schema",
        json_schema: { properties: { price: "number" } },
      }),
    },
  )
  .refine(
    ({ json_schema, schema }) => (json_schema ?? null) === null || (schema ?? null) === null,
    {
      path: ["json_schema"],
      error: "Expected json_schema or schema, not both",
      when: ({ issues }) => issues.length === 0,
    },
  )
  .transform(({ type, json_schema, schema }) => ({
    type,
    // Clients of the public SDK may send null.
    json_schema: json_schema ?? schema ?? ANY_OBJECT,
  }));

const CustomModel = z.strictObject({
  model: AiModel.describe("Provider and model name, for example openai/gpt-5"),
  authorization: fieldValue(HEADER_VALUE_CHARS_MAX)
    .min(1)
    .optional()
    .describe("Authorization header for the provider: `Bearer` and a key")
    .meta({ secret: true }),
});

/** Fields to spread into the strict object of an endpoint. Add `jsonQuestionRules` as a `check` of that object. */
export const jsonQuestionFields = {
  prompt: z
    .string()
    .min(1)
    .max(JSON_PROMPT_CHARS_MAX)
    .optional()
    .describe("Instructions for the model"),
  response_format: ResponseFormat.optional(),
  custom_ai: z
    .array(CustomModel)
    .min(1)
    .max(CUSTOM_MODELS_MAX)
    .optional()
    .describe("Models to try in this order, instead of the platform's default"),
};

interface Question {
  prompt?: string | undefined;
  response_format?: object | undefined;
}

/**
 * Refuses a question with neither a prompt nor a response format. Use it as a `check` of an object with these fields.
 */
export function jsonQuestionRules({ value, issues }: z.core.ParsePayload<Question>): void {
  if (value.prompt !== undefined || value.response_format !== undefined) return;
  const message = "Expected a prompt, a response_format, or both";
  issues.push({ code: "custom", path: ["prompt"], message, input: value });
}
