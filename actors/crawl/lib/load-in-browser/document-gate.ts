/**
 * Lets a page of a crawl request its own document once, and no other document. Redirects, and addresses to which
 * scripts or a refresh lead, need requests with turns of their own.
 */
import type { CDPSession, Protocol } from "puppeteer-core";
import { CRAWL_BODY_BYTES_MAX, LARGE_BODY_BYTES } from "../../../../schemas/crawl/limits.ts";
import { CHUNK_BYTES } from "../../../../schemas/limits.ts";
import { EGRESS_FIELD } from "../../../egress/http-headers.ts";
import { type DocumentForm, documentForm } from "../load/content-types.ts";
import type { DocumentDeparture } from "./document-departure.ts";

type Paused = Protocol.Fetch.RequestPausedEvent;

interface ExpectedDocument {
  /** Address without fragment. */
  url: string;
  /** Header fields that are added unless the page sets them. */
  headers: Readonly<Record<string, string>>;
  departure: DocumentDeparture;
  onLarge(): Promise<void>;
  /** Whether the response head makes the document worth loading. */
  wants(head: DocumentHead): boolean;
}

export interface DocumentHead {
  status: number;
  headers: Headers;
  form: DocumentForm;
}

export interface DocumentBody {
  bytes: Uint8Array;
  truncated: boolean;
}

/** The known facts of a document. They grow while the page loads. */
export interface SeenDocument {
  head?: DocumentHead;
  /**
   * The gate has ended the load of the page: the response is a redirect, is not wanted, or was read without showing
   * it.
   */
  ended: boolean;
  /** We ended the load because our proxy could not reach the host. */
  isUnreached: boolean;
  /** The browser's id of the document's request, set when the request appears at the gate. */
  requestId?: string;
  /** The body of a document that browsers would not show unchanged, so that the gate reads it itself. */
  body?: Promise<DocumentBody>;
  /** The browser reports the document's bytes: it may be large, or grow by decompression. */
  isMeasured: boolean;
}

interface Expectation extends ExpectedDocument {
  seen: SeenDocument;
}

export class DocumentGate {
  /** Frame of the page itself. */
  readonly frameId: string;
  readonly #session: CDPSession;
  #expected: Expectation | undefined;

  /**
   * Installs the gate on a DevTools session that nothing else uses: another request filter on the session would also
   * answer the gate's paused requests.
   */
  static async install(session: CDPSession, frameId: string): Promise<DocumentGate> {
    const gate = new DocumentGate(session, frameId);
    await session.send("Fetch.enable", {
      patterns: [
        { resourceType: "Document", requestStage: "Request" },
        { resourceType: "Document", requestStage: "Response" },
        // This pattern is for prefetches, but includes the requests of scripts. Chromium shows the difference only in
        // the event of a paused request.
        { resourceType: "Fetch", requestStage: "Request" },
      ],
    });
    return gate;
  }

  /** Use `install`. */
  constructor(session: CDPSession, frameId: string) {
    this.#session = session;
    this.frameId = frameId;
    session.on("Fetch.requestPaused", (event) => {
      this.#decide(event).catch(() => {
        // A page that is gone needs no answer.
      });
    });
  }

  /** Allows one request for this document. */
  expect(document: ExpectedDocument): SeenDocument {
    const seen: SeenDocument = { ended: false, isUnreached: false, isMeasured: false };
    this.#expected = { ...document, seen };
    return seen;
  }

  /** Waits for the time window of another request for the document. Resolves with whether that request may leave. */
  async oneMore(): Promise<boolean> {
    return (await this.#expected?.departure.oneMore()) ?? false;
  }

  /** Forbids all documents. */
  close(): void {
    this.#expected = undefined;
  }

  async #decide(event: Paused): Promise<void> {
    const { requestId, frameId, resourceType } = event;
    // Chromium gives prefetches this type. The gate refuses them: a prefetched page of the crawl would be a request
    // without a turn.
    if (resourceType === "Fetch") return await this.#refuse(requestId);
    if (resourceType !== "Document") return await this.#pass(requestId);
    // A frame inside the page is a part of the page.
    if (frameId !== this.frameId) return await this.#pass(requestId);
    const isAnswer =
      event.responseStatusCode !== undefined || event.responseErrorReason !== undefined;
    if (isAnswer) return await this.#onAnswer(event);
    const expected = this.#expected;
    if (expected === undefined) return await this.#refuse(requestId);
    const { networkId = "" } = event;
    const { seen } = expected;
    if (seen.requestId === undefined && withoutFragment(event.request.url) === expected.url) {
      const { departure } = expected;
      seen.requestId = networkId;
      if (!(await departure.mayGoOn())) return await this.#refuse(requestId);
      const added = { ...expected.headers, ...departure.headers };
      const headers = headersOf(event.request.headers, added);
      departure.release(networkId);
      return await this.#pass(requestId, headers);
    }
    // The browser's internal redirects, such as an upgrade to https, have no response. The gate sees only the request
    // for their target.
    if (seen.requestId === networkId && !seen.ended) {
      const headers = new Headers({ location: event.request.url });
      seen.head = { status: 307, headers, form: "html" };
      seen.ended = true;
    }
    await this.#refuse(requestId);
  }

  async #onAnswer(event: Paused): Promise<void> {
    const { requestId, networkId, responseStatusCode: status, responseHeaders = [] } = event;
    const expected = this.#expected;
    if (expected === undefined || expected.seen.requestId !== networkId) {
      return await this.#refuse(requestId);
    }
    if (status === undefined) {
      expected.departure.failed();
      return await this.#pass(requestId);
    }
    const headers = new Headers();
    for (const { name, value } of responseHeaders) appendTo(headers, name, value);
    const { seen, departure } = expected;
    if (isOfProxy(event.request.url, headers)) {
      seen.isUnreached = true;
      seen.ended = true;
      return await this.#refuse(requestId);
    }
    departure.arrived();
    const head = { status, headers, form: documentForm(headers.get("content-type")) };
    seen.head = head;
    if (!expected.wants(head)) {
      seen.ended = true;
      return await this.#refuse(requestId);
    }
    const length = Number(headers.get("content-length") ?? Number.NaN);
    if (headers.has("content-encoding") || !(length <= LARGE_BODY_BYTES)) {
      seen.isMeasured = true;
      // Commands run in order, so this runs before the document continues.
      this.#session.send("Network.enable").catch(() => {});
    }
    if (isSaved(head)) {
      seen.ended = true;
      seen.body = this.#read(requestId, expected.onLarge);
      await seen.body.catch(() => {});
      return await this.#refuse(requestId);
    }
    return await this.#pass(requestId);
  }

  /** Reads the body of a paused response. */
  async #read(requestId: string, onLarge: () => Promise<void>): Promise<DocumentBody> {
    const session = this.#session;
    const { stream: handle } = await session.send("Fetch.takeResponseBodyAsStream", { requestId });
    const chunks: Buffer[] = [];
    let left = CRAWL_BODY_BYTES_MAX;
    let isLarge = false;
    for (;;) {
      // The extra byte shows whether more follows.
      const size = Math.min(CHUNK_BYTES, left + 1);
      const { data, base64Encoded, eof } = await session.send("IO.read", { handle, size });
      const chunk = Buffer.from(data, base64Encoded ? "base64" : "utf8");
      chunks.push(chunk.subarray(0, left));
      const truncated = chunk.length > left;
      left -= Math.min(left, chunk.length);
      if (eof || truncated) {
        await session.send("IO.close", { handle });
        return { bytes: Buffer.concat(chunks), truncated };
      }
      if (isLarge || CRAWL_BODY_BYTES_MAX - left <= LARGE_BODY_BYTES) continue;
      isLarge = true;
      await onLarge();
    }
  }

  async #pass(requestId: string, headers?: Protocol.Fetch.HeaderEntry[]): Promise<void> {
    const changed = headers !== undefined && { headers };
    await this.#session.send("Fetch.continueRequest", { requestId, ...changed });
  }

  /** Refuses a request. The page stays as it is; another reason would show an error page. */
  async #refuse(requestId: string): Promise<void> {
    await this.#session.send("Fetch.failRequest", { requestId, errorReason: "Aborted" });
  }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * Whether the response is an error of our own proxy. The proxy strips this field from other responses, and never
 * answers inside tunnels.
 */
const isOfProxy = (url: string, headers: Headers) =>
  url.startsWith("http:") && headers.has(EGRESS_FIELD);

/** Whether browsers would save the document or show it in a viewer. */
function isSaved({ headers, form }: DocumentHead): boolean {
  return form === "text" || /^\s*attachment/i.test(headers.get("content-disposition") ?? "");
}

function withoutFragment(url: string): string {
  const hash = url.indexOf("#");
  return hash < 0 ? url : url.slice(0, hash);
}

/** Returns the given header fields and those of ours that they lack; undefined if they lack none. */
function headersOf(
  given: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Protocol.Fetch.HeaderEntry[] | undefined {
  const names = lowered(given);
  const added = Object.entries(ours).filter(([name]) => !(name.toLowerCase() in names));
  if (added.length === 0) return undefined;
  return [...Object.entries(given), ...added].map(([name, value]) => ({ name, value }));
}

/** Appends a field, unless `Headers` rejects its value. Browsers accept some such values. */
function appendTo(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, Buffer.from(value).toString("latin1"));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
