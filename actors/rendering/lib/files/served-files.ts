/** Serves the files of one request from memory, at an origin that only the page's own browser context can reach. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { PageFile } from "../../../../schemas/rendering/http/page-files.ts";
import type { LocalSite } from "../../../egress/egress-proxy.ts";
import { mediaTypeOf } from "./media-types.ts";

/**
 * The host of the files. A name below localhost is a secure context, as a local file is, and it exists on no network.
 */
export const FILES_HOST = "files.trunkline.localhost";

/** Headers that prevent frames of other origins within the document from reading or embedding its files. */
const OF_THIS_ORIGIN = {
  "Cross-Origin-Resource-Policy": "same-origin",
  "X-Frame-Options": "SAMEORIGIN",
};

export class ServedFiles implements LocalSite {
  readonly host = FILES_HOST;
  readonly #files: ReadonlyMap<string, PageFile>;
  /**
   * Decoded bytes of the files that the page has requested. Files are decoded only on request, because each of many
   * source documents requests only a few of them.
   */
  readonly #decoded = new Map<string, Buffer>();
  /** Pages that were generated from files, by file name. */
  readonly #pages: ReadonlyMap<string, string>;

  /** `pages` contains the HTML for files that a browser cannot show as documents, such as Markdown. */
  constructor(files: readonly PageFile[], pages: ReadonlyMap<string, string> = new Map()) {
    this.#files = new Map(files.map((file) => [file.name, file]));
    this.#pages = pages;
  }

  answer({ pathname }: URL, request: IncomingMessage, response: ServerResponse): void {
    const { method = "", headers } = request;
    if (method !== "GET" && method !== "HEAD") {
      response.writeHead(405, { Allow: "GET, HEAD" }).end();
      return;
    }
    const name = nameOf(pathname);
    const bytes = this.#bytesOf(name);
    if (bytes === undefined) {
      response.writeHead(404, { "Content-Type": "text/plain; charset=utf-8" });
      response.end(`No file of the request has the name ${name}\n`);
      return;
    }
    const page = headers.accept?.includes("text/html") ? this.#pages.get(name) : undefined;
    const content: Content =
      page === undefined
        ? { type: mediaTypeOf(name, () => isUtf8(bytes)), bytes }
        : { type: "text/html; charset=utf-8", bytes: Buffer.from(page) };
    answerBytes(response, headers.range, content);
  }

  #bytesOf(name: string): Buffer | undefined {
    const file = this.#files.get(name);
    if (file === undefined) return undefined;
    const bytes = this.#decoded.get(name) ?? Buffer.from(file.base64, "base64");
    this.#decoded.set(name, bytes);
    return bytes;
  }
}

/** Returns the address of a served file. */
export function addressOf(name: string): string {
  const path = name.split("/").map(encodeURIComponent).join("/");
  return `http://${FILES_HOST}/${path}`;
}

function nameOf(pathname: string): string {
  const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
  try {
    return decodeURIComponent(path.slice(1)).normalize();
  } catch {
    // No file name contains a single %, but a browser may send one in a path.
    return path.slice(1);
  }
}

interface Content {
  type: string | undefined;
  bytes: Buffer;
}

/** Answers with the bytes, or with the one range that the request names, because media players seek. */
function answerBytes(response: ServerResponse, range: string | undefined, content: Content): void {
  const { type, bytes } = content;
  const fields = { ...OF_THIS_ORIGIN, ...(type && { "Content-Type": type }) };
  const [, from = "", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  const begin = Number(from);
  const last = Math.min(to === "" ? bytes.length : Number(to), bytes.length - 1);
  if (from === "" || begin > last) {
    response.writeHead(200, {
      ...fields,
      "Accept-Ranges": "bytes",
      "Content-Length": bytes.length,
    });
    response.end(bytes);
    return;
  }
  const part = bytes.subarray(begin, last + 1);
  const contentRange = `bytes ${begin}-${last}/${bytes.length}`;
  response.writeHead(206, {
    ...fields,
    "Content-Range": contentRange,
    "Content-Length": part.length,
  });
  response.end(part);
}
