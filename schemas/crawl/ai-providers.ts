/** The AI providers that a request may name, with their OpenAI-compatible endpoints. */
import { z } from "zod";
import { MODEL_CHARS_MAX } from "./limits.ts";

/** Some providers have two names, that of the company and that of its product. */
export const AI_PROVIDERS: Readonly<Record<string, string>> = {
  anthropic: "https://api.anthropic.com/v1",
  cerebras: "https://api.cerebras.ai/v1",
  cohere: "https://api.cohere.ai/compatibility/v1",
  deepinfra: "https://api.deepinfra.com/v1/openai",
  deepseek: "https://api.deepseek.com/v1",
  fireworks: "https://api.fireworks.ai/inference/v1",
  google: "https://generativelanguage.googleapis.com/v1beta/openai",
  "google-ai-studio": "https://generativelanguage.googleapis.com/v1beta/openai",
  grok: "https://api.x.ai/v1",
  groq: "https://api.groq.com/openai/v1",
  huggingface: "https://router.huggingface.co/v1",
  mistral: "https://api.mistral.ai/v1",
  moonshot: "https://api.moonshot.ai/v1",
  nvidia: "https://integrate.api.nvidia.com/v1",
  openai: "https://api.openai.com/v1",
  openrouter: "https://openrouter.ai/api/v1",
  perplexity: "https://api.perplexity.ai",
  together: "https://api.together.xyz/v1",
  xai: "https://api.x.ai/v1",
};

/** `<provider>/<name>`. The name may contain slashes. */
export const AiModel = z
  .string()
  .max(MODEL_CHARS_MAX)
  .refine((model) => isKnown(model), {
    error: `Expected <provider>/<name>, the provider one of ${Object.keys(AI_PROVIDERS).join(", ")}`,
  });

export function partsOfModel(model: string): { provider: string; name: string } {
  const slash = model.indexOf("/");
  return { provider: model.slice(0, Math.max(0, slash)), name: model.slice(slash + 1) };
}

function isKnown(model: string): boolean {
  const { provider, name } = partsOfModel(model);
  return Object.hasOwn(AI_PROVIDERS, provider) && /^[\x21-\x7e]+$/.test(name);
}
