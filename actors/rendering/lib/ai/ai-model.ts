/** A client of one AI model behind an OpenAI-compatible endpoint. */
import { createHash } from "node:crypto";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  extractJsonMiddleware,
  extractReasoningMiddleware,
  generateText,
  type JSONSchema7,
  type ModelMessage,
  wrapLanguageModel,
} from "ai";
import { EgressError } from "../../../egress/egress-error.ts";
import { AiFault } from "./ai-fault.ts";
import { AnswerTooLarge, type Fetch } from "./ai-fetch.ts";

/** Maximum characters of a provider's error text that a reason quotes: about one sentence. */
const JSON_QUOTED_CHARS_MAX = 200;
/**
 * Maximum schemas, each with the model that refused it, that are stored. If one is evicted, its next use costs one more
 * request.
 */
export const REFUSED_SCHEMAS_MAX = 256;

export interface AiEndpoint {
  /** Name of the model in reasons. */
  label: string;
  baseUrl: string;
  model: string;
  /** A key, or a complete Authorization field: `Bearer …`. */
  authorization: string | undefined;
  fetch: Fetch;
  /**
   * Whether reasons may quote error texts of this endpoint. Users must not see the error texts of an internal
   * service.
   */
  quoted: boolean;
}

export class AiModelClient {
  readonly #endpoint: AiEndpoint;
  readonly #model;
  /**
   * Models and the schemas that they refused. Many servers refuse all schemas, others only some. All accounts share
   * this set, so a refused schema says nothing about another schema.
   */
  readonly #refused: Set<string>;
  readonly #name: string;

  constructor(endpoint: AiEndpoint, refused: Set<string>) {
    const { baseUrl, model, authorization, fetch } = endpoint;
    this.#endpoint = endpoint;
    this.#refused = refused;
    this.#name = `${baseUrl} ${model}`;
    const provider = createOpenAICompatible({
      name: "endpoint",
      baseURL: baseUrl,
      fetch,
      headers: authorization === undefined ? {} : { Authorization: fieldOf(authorization) },
      supportsStructuredOutputs: true,
    });
    this.#model = wrapLanguageModel({
      model: provider(model),
      middleware: [
        extractJsonMiddleware({ transform: bareJson }),
        extractReasoningMiddleware({ tagName: "think" }),
      ],
    });
  }

  /**
   * Sends messages to the model and returns its answer, without the text around the JSON. Throws an `AiFault`, or the
   * reason of the aborted signal.
   */
  async ask(
    messages: readonly ModelMessage[],
    { schema, signal }: { schema: JSONSchema7; signal: AbortSignal },
  ): Promise<string> {
    const use = `${this.#name} ${hashOf(schema)}`;
    if (this.#refused.has(use)) return await this.#ask(messages, undefined, signal);
    try {
      return await this.#ask(messages, schema, signal);
    } catch (error) {
      const refused = error instanceof AiFault && (error.status === 400 || error.status === 422);
      if (!refused) throw error;
      const text = await this.#ask(messages, undefined, signal);
      // The model refused the schema, so later requests omit it. The prompt contains the schema as text anyway.
      this.#refused.add(use);
      const [oldest = ""] = this.#refused;
      if (this.#refused.size > REFUSED_SCHEMAS_MAX) this.#refused.delete(oldest);
      return text;
    }
  }

  async #ask(
    messages: readonly ModelMessage[],
    schema: JSONSchema7 | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const model = schema === undefined ? this.#model : inSchema(this.#model, schema);
    try {
      const { text } = await generateText({
        model,
        messages: [...messages],
        allowSystemInMessages: true,
        maxRetries: 0,
        abortSignal: signal,
        // Turns strict mode off: strict schemas must list every field as required, and schemas of users often do not.
        providerOptions: { openaiCompatible: { strictJsonSchema: false } },
      });
      return text;
    } catch (error) {
      signal.throwIfAborted();
      throw faultOf(error, this.#endpoint);
    }
  }
}

const hashOf = (schema: JSONSchema7) =>
  createHash("sha256").update(JSON.stringify(schema)).digest("base64");

function inSchema(model: ReturnType<typeof wrapLanguageModel>, schema: JSONSchema7) {
  return wrapLanguageModel({
    model,
    middleware: {
      transformParams: async ({ params }) => ({
        ...params,
        responseFormat: { type: "json", schema, name: "page" },
      }),
    },
  });
}

function fieldOf(authorization: string): string {
  return /^\S+ +\S/.test(authorization) ? authorization : `Bearer ${authorization}`;
}

/** Strips a code fence, and text before and after the JSON. */
function bareJson(text: string): string {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(text)?.[1] ?? text;
  const bare = fenced.trim();
  if (/^[[{"]/.test(bare)) return bare;
  const start = bare.search(/[[{]/);
  const end = Math.max(bare.lastIndexOf("}"), bare.lastIndexOf("]"));
  return start >= 0 && end > start ? bare.slice(start, end + 1) : bare;
}

function faultOf(error: unknown, endpoint: AiEndpoint): AiFault {
  const cause = rootOf(error);
  if (cause instanceof AnswerTooLarge) return new AiFault(cause.message, { retry: false });
  if (cause instanceof EgressError) {
    const retry = cause.code !== "address_refused" && cause.code !== "transfer_too_large";
    return new AiFault(afterColon(cause.message), { retry, cause });
  }
  if (cause instanceof Error && "code" in cause) {
    return new AiFault("the connection to it failed", { retry: true, cause });
  }
  if (!APICallError.isInstance(error)) {
    return new AiFault("it gave no answer in the OpenAI-compatible protocol", {
      retry: false,
      cause: error,
    });
  }
  const { statusCode: status } = error;
  if (status === undefined)
    return new AiFault("the connection to it failed", { retry: true, cause });
  if (status < 300) {
    const message = "it gave no answer in the OpenAI-compatible protocol";
    return new AiFault(message, { status, retry: false });
  }
  return new AiFault(`it answered ${status}${wordsOf(error, endpoint)}`, {
    status,
    retry: status === 408 || status === 429 || status >= 500,
    waitMs: retryAfterMs(error.responseHeaders),
  });
}

/** Returns the error text of an OpenAI-compatible server without the caller's key. */
function wordsOf({ responseBody = "" }: APICallError, { quoted, authorization }: AiEndpoint) {
  const message = quoted
    ? /"message"\s*:\s*"((?:[^"\\]|\\.){1,1000})"/.exec(responseBody)?.[1]
    : "";
  if (!message) return "";
  const secret = authorization?.split(" ").at(-1) ?? "";
  const words = (secret === "" ? message : message.replaceAll(secret, "…")).replace(/\\(.)/g, "$1");
  return `: ${words.slice(0, JSON_QUOTED_CHARS_MAX)}`;
}

function retryAfterMs(headers: Record<string, string> | undefined): number | undefined {
  const field = headers?.["retry-after"];
  if (field === undefined || !/^\d{1,9}$/.test(field)) return undefined;
  return Number(field) * 1_000;
}

function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause !== undefined) root = root.cause;
  return root;
}

/** Returns the text after the first colon. Connection errors have the form `Cannot fetch from host: …`. */
function afterColon(message: string): string {
  return message.slice(message.indexOf(": ") + 2);
}
