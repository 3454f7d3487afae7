/** Returns a page as Markdown, with the converter that crawls use. */
import { ActorError } from "../../../../../schemas/errors.ts";
import type { MarkdownRequest } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { MarkdownPool } from "../../../lib/extract/markdown-pool.ts";
import type { ThreadCaller } from "../../../lib/threads/thread-pool.ts";
import type { Output, PageParameters, ReadAnswer } from "./output.ts";
import { checkText, type PageText, readText } from "./read-text.ts";

export type Converter = Pick<MarkdownPool, "convert">;

export function markdownOutput(converter: Converter): Output<MarkdownRequest, ReadAnswer<string>> {
  return async ({ context }, parameters) => {
    const text = await readText(context);
    return async (caller) => ({ result: await convert(converter, text, { parameters, caller }) });
  };
}

export async function convert(
  converter: Converter,
  { html, baseUrl, title }: PageText,
  { parameters, caller }: { parameters: PageParameters; caller: ThreadCaller },
): Promise<string> {
  const isScripted = parameters.setJavaScriptEnabled !== false;
  const page = { html, baseUrl, isScripted, ...(title !== "" && { title }) };
  const made = await converter.convert(page, caller);
  if (made.kind === "failed") throw new ActorError("page_not_printable", made.reason);
  // Relative addresses in the HTML became absolute and longer, so the size is checked again.
  checkText(made.markdown, "Markdown");
  return made.markdown;
}
