/** Reads a form with files (RFC 7578), and returns the equivalent JSON body. */
import { pipeline } from "node:stream/promises";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { ActorError } from "../../schemas/errors.ts";
import { FILES_MAX } from "../../schemas/rendering/limits.ts";
import { readJson } from "./read-json.ts";
import { shortened } from "./shortened.ts";

/** Limits the bytes of one part's headers: several times as many as the longest file path in Unicode needs. */
const PART_HEADER_BYTES_MAX = 32 * 1024;
/**
 * Limits the parts of a form: the options, and one file more than the limit of files, so that a form with too many
 * files gets the message about files.
 */
const PARTS_MAX = FILES_MAX + 2;

interface FormBody {
  [option: string]: unknown;
  files?: { name: string; base64: string }[];
}

/**
 * Reads the part `options`, which is JSON, and the parts `files`. `type` is the Content-Type of the form. The caller
 * limits the bytes of the chunks.
 */
export async function readForm(chunks: AsyncIterable<Buffer>, type: string): Promise<FormBody> {
  const form = new Form();
  const parser = parserOf(type);
  parser.on("partsLimit", () => parser.destroy(refused("/files", `at most ${FILES_MAX} files`)));
  parser.on("file", (field, content, name) => {
    try {
      form.take(field, name, content);
    } catch (error) {
      // Discards the part: an unread part would block the parser forever.
      content.on("error", () => {}).resume();
      parser.destroy(error as Error);
    }
  });
  try {
    await pipeline(chunks, parser);
  } catch (error) {
    if (error instanceof ActorError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new ActorError("invalid_request", `Cannot accept body: the form is invalid: ${reason}`);
  }
  return form.body();
}

/** Collects the parts of one form as they arrive. */
class Form {
  #options: Buffer[] | undefined;
  readonly #files: { name: string; pieces: Buffer[] }[] = [];

  take(field: string | undefined, name: string | undefined, content: BusboyFileStream): void {
    const pieces: Buffer[] = [];
    // Errors of the part are ignored: the parser also reports that the form was interrupted.
    content.on("data", (piece: Buffer) => pieces.push(piece)).on("error", () => {});
    if (field === "options") {
      if (this.#options !== undefined) throw refused("/options", "one part of this name");
      this.#options = pieces;
    } else if (field === "files") {
      const pointer = `/files/${this.#files.length}/name`;
      if (!name) throw refused(pointer, 'a file with a name, as in filename="index.html"');
      if (this.#files.length === FILES_MAX) throw refused("/files", `at most ${FILES_MAX} files`);
      this.#files.push({ name, pieces });
    } else {
      throw refused(`/${shortened(field ?? "")}`, "a part named options or files");
    }
  }

  body(): FormBody {
    const options = this.#options && readOptions(Buffer.concat(this.#options));
    if (options && "files" in options)
      throw refused("/options/files", "files as parts of the form");
    const files = this.#files.map(({ name, pieces }) => {
      const base64 = Buffer.concat(pieces.splice(0)).toString("base64");
      return { name, base64 };
    });
    return { ...options, ...(files.length > 0 && { files }) };
  }
}

function readOptions(bytes: Buffer): object {
  let value: unknown;
  try {
    value = readJson(bytes);
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    throw refused("/options", `JSON: ${error.message.replace("Cannot accept body: ", "")}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw refused("/options", 'a JSON object, as in {"pdfOptions": {"format": "a4"}}');
}

function parserOf(type: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { "content-type": type },
      preservePath: true,
      // A browser sends the options as a file if the page adds them as a Blob.
      isPartAFile: () => true,
      limits: { parts: PARTS_MAX, headerSize: PART_HEADER_BYTES_MAX, headerPairs: 20 },
    });
  } catch {
    throw new ActorError(
      "invalid_request",
      "Cannot accept body: expected a Content-Type multipart/form-data with its boundary",
    );
  }
}

function refused(pointer: string, expected: string): ActorError {
  return new ActorError("invalid_request", "Cannot accept request: see its faults", {
    faults: [{ pointer, message: `Cannot accept ${pointer}: Expected ${expected}` }],
  });
}
