/** All calls that render a page: their names, their requests, and the form of their responses. */
import { z } from "zod";
import { ENVELOPE_START } from "../../http/envelope.ts";
import { PAGE_CALLS, type PageCallName } from "./page-calls.ts";
import { PdfRequest } from "./pdf.ts";
import { mediaTypeOf, ScreenshotRequest } from "./screenshot.ts";

const PAGE_CALL_NAMES = Object.keys(PAGE_CALLS) as PageCallName[];

export const RenderCall = z.enum(["pdf", "screenshot", ...PAGE_CALL_NAMES]);
export type RenderCall = z.output<typeof RenderCall>;

/** Returns the schema of a call's parameters. The schema accepts its own output. */
export function requestOf(call: RenderCall): z.ZodType {
  if (call === "pdf") return PdfRequest;
  return call === "screenshot" ? ScreenshotRequest : PAGE_CALLS[call].request;
}

export interface AnswerForm {
  mediaType: string;
  /** The file name extension for such a response. */
  extension: string;
  /** Text of the response before the bytes from the worker; `after` is the text behind them. */
  before: string;
  after: string;
}

/** The parameters on which the form of a response depends. */
interface FormParameters {
  report?: boolean | undefined;
  screenshotOptions?: ScreenshotRequest["screenshotOptions"];
}

const IN_ENVELOPE: AnswerForm = {
  mediaType: "application/json; charset=utf-8",
  extension: "json",
  before: ENVELOPE_START,
  after: "}",
};

export function answerFormOf(call: RenderCall, parameters: FormParameters): AnswerForm {
  const { report, screenshotOptions } = parameters;
  if (report || (call !== "pdf" && call !== "screenshot")) return IN_ENVELOPE;
  const mediaType =
    call === "screenshot" && screenshotOptions ? mediaTypeOf(screenshotOptions) : "application/pdf";
  const extension = mediaType === "text/plain" ? "txt" : (mediaType.split("/")[1] ?? "");
  return { mediaType, extension, before: "", after: "" };
}

/** Adds the text of the response form around the bytes of a worker. */
export async function* inForm(
  { before, after }: AnswerForm,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (before !== "") yield Buffer.from(before);
  yield* chunks;
  if (after !== "") yield Buffer.from(after);
}
