/** Serves the files of a request behind the page's proxy, and returns the address of their document. */
import { INDEX_NAMES } from "../../../../schemas/rendering/http/page-files.ts";
import type { Limits } from "../../lib/browser/load-page.ts";
import type { PageRequest } from "../../lib/browser/prepare-page.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";
import { renderMarkdown } from "../../lib/files/render-markdown.ts";
import { addressOf, ServedFiles } from "../../lib/files/served-files.ts";

export interface OpenedRequest extends PageRequest {
  /** File name of the document. */
  document?: string;
}

/** Returns the parameters, with the address of the document if it is one of the files. */
export async function openFiles(
  { egress }: Pick<RenderContext, "egress">,
  parameters: OpenedRequest,
  limits: Limits & { account: string },
): Promise<PageRequest> {
  const { files } = parameters;
  if (files === undefined) return parameters;
  const names = new Set(files.map(({ name }) => name));
  const found = parameters.document ?? INDEX_NAMES.find((name) => names.has(name));
  if (found === undefined) throw new Error("Cannot open files: no document is among them");
  const name = found.normalize();
  const pages = new Map<string, string>();
  const source = files.find((file) => file.name === name);
  if (source !== undefined && /\.(?:md|markdown)$/i.test(name)) {
    const text = Buffer.from(source.base64, "base64").toString();
    pages.set(name, await renderMarkdown(text, limits));
  }
  egress.serve(new ServedFiles(files, pages));
  return { ...parameters, url: addressOf(name) };
}
