/** Returns several formats of a page that is loaded once. */
import type {
  SnapshotFormat,
  SnapshotRequest,
  SnapshotResult,
} from "../../../../../schemas/rendering/http/page-calls.ts";
import { capture, pictureReady } from "../take-screenshot.ts";
import { readTree } from "./accessibility-tree.ts";
import { metaOf } from "./content.ts";
import { type Converter, convert } from "./markdown.ts";
import type { Output, ReadAnswer } from "./output.ts";
import { readText } from "./read-text.ts";

export function snapshotOutput(
  converter: Converter,
): Output<SnapshotRequest, ReadAnswer<SnapshotResult>> {
  return async (page, parameters) => {
    const { context, document } = page;
    const has = (format: SnapshotFormat) => parameters.formats.includes(format);
    if (has("screenshot")) await pictureReady(page);
    const text = await readText(context);
    const tree = has("accessibilityTree") ? await readTree(context, {}) : undefined;
    document.check();
    const screenshot = has("screenshot") ? await capture(context, parameters) : undefined;
    const meta = metaOf(page, text.title);
    return async (caller) => ({
      result: {
        ...(has("content") && { content: text.html }),
        ...(screenshot !== undefined && { screenshot }),
        ...(has("markdown") && {
          markdown: await convert(converter, text, { parameters, caller }),
        }),
        ...(tree !== undefined && { accessibilityTree: tree }),
      },
      meta,
    });
  };
}
