/** The HTML of a page after rendering. */
import type { ContentRequest, PageMeta } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { LoadedPage, Output, ReadAnswer } from "./output.ts";
import { readText } from "./read-text.ts";

export const content: Output<ContentRequest, ReadAnswer<string>> = async (page) => {
  const { html, title } = await readText(page.context);
  const meta = metaOf(page, title);
  return async () => ({ result: html, meta });
};

export function metaOf({ document }: Pick<LoadedPage, "document">, title: string): PageMeta {
  return { status: document.status ?? null, title };
}
