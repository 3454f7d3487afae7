/**
 * Lets a page of a crawl request its own document, once, and no other: what comes after a redirect, and wherever scripts
 * or a refresh want to go, is a request of its own that waits for its turn.
 */
import type { CDPSession, Protocol } from "puppeteer-core";
import { CRAWL_BODY_BYTES_MAX, LARGE_BODY_BYTES } from "../../../../schemas/crawl/limits.ts";
import { CHUNK_BYTES } from "../../../../schemas/limits.ts";
import { EGRESS_FIELD } from "../../../egress/http-headers.ts";
import { type DocumentForm, documentForm } from "../load/content-types.ts";
import type { DocumentDeparture } from "./document-departure.ts";

type Paused = Protocol.Fetch.RequestPausedEvent;

interface ExpectedDocument {
  /** Without fragment. */
  url: string;
  /** Set in the request unless the page has such a field already. */
  headers: Readonly<Record<string, string>>;
  departure: DocumentDeparture;
  onLarge(): Promise<void>;
  /** Whether the answer makes the document worth loading. */
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

/** What is known of a document; it grows while the page loads. */
export interface SeenDocument {
  head?: DocumentHead;
  /** The loading was ended by us: a redirect, or a head that is not wanted. */
  ended: boolean;
  /** So it was, since our proxy could not reach the host. */
  isUnreached: boolean;
  /** Of the network, once the request has left. */
  requestId?: string;
  /** Of one that browsers do not show as it is. */
  body?: Promise<DocumentBody>;
  /** What of it comes is reported: it may be large, or grow when it is decoded. */
  isMeasured: boolean;
}

interface Expectation extends ExpectedDocument {
  seen: SeenDocument;
}

export class DocumentGate {
  /** Of the page itself. */
  readonly frameId: string;
  readonly #session: CDPSession;
  #expected: Expectation | undefined;

  /** The session has to be of its own: one that filters requests would answer for us. */
  static async install(session: CDPSession, frameId: string): Promise<DocumentGate> {
    const gate = new DocumentGate(session, frameId);
    await session.send("Fetch.enable", {
      patterns: [
        { resourceType: "Document", requestStage: "Request" },
        { resourceType: "Document", requestStage: "Response" },
        // With it come scripts' own requests, which Chromium tells from these only when they have been stopped.
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
        // A page that is gone needs no answers.
      });
    });
  }

  /** From now on one request for the document may pass. */
  expect(document: ExpectedDocument): SeenDocument {
    const seen: SeenDocument = { ended: false, isUnreached: false, isMeasured: false };
    this.#expected = { ...document, seen };
    return seen;
  }

  /** Whether the document may be asked for once more, once it may. */
  async oneMore(): Promise<boolean> {
    return (await this.#expected?.departure.oneMore()) ?? false;
  }

  /** From now on none may. */
  close(): void {
    this.#expected = undefined;
  }

  async #decide(event: Paused): Promise<void> {
    const { requestId, frameId, resourceType } = event;
    // Chromium's name for what a link wants fetched ahead: of a page of the crawl that is a request without a turn.
    if (resourceType === "Fetch") return await this.#refuse(requestId);
    if (resourceType !== "Document") return await this.#pass(requestId);
    // A frame within the page is a part of it.
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
    // Redirects inside the browser, such as to https, show here only.
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
      // Answered before the document goes on, since commands are carried out in order.
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

  /** Of an answer that is paused. */
  async #read(requestId: string, onLarge: () => Promise<void>): Promise<DocumentBody> {
    const session = this.#session;
    const { stream: handle } = await session.send("Fetch.takeResponseBodyAsStream", { requestId });
    const chunks: Buffer[] = [];
    let left = CRAWL_BODY_BYTES_MAX;
    let isLarge = false;
    for (;;) {
      // One byte more tells whether there is more.
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

  /** The page stays as it is: any other reason would show an error in its place. */
  async #refuse(requestId: string): Promise<void> {
    await this.#session.send("Fetch.failRequest", { requestId, errorReason: "Aborted" });
  }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

/** What our proxy says of a failure. It passes no such field on, and answers nothing inside of tunnels. */
const isOfProxy = (url: string, headers: Headers) =>
  url.startsWith("http:") && headers.has(EGRESS_FIELD);

/** Browsers would save it, or show it in a view of their own. */
function isSaved({ headers, form }: DocumentHead): boolean {
  return form === "text" || /^\s*attachment/i.test(headers.get("content-disposition") ?? "");
}

function withoutFragment(url: string): string {
  const hash = url.indexOf("#");
  return hash < 0 ? url : url.slice(0, hash);
}

/** All fields of the request with ours, or undefined where nothing changes. */
function headersOf(
  given: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Protocol.Fetch.HeaderEntry[] | undefined {
  const names = lowered(given);
  const added = Object.entries(ours).filter(([name]) => !(name.toLowerCase() in names));
  if (added.length === 0) return undefined;
  return [...Object.entries(given), ...added].map(([name, value]) => ({ name, value }));
}

/** Browsers give fields as text, and take some that `Headers` does not. */
function appendTo(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, Buffer.from(value).toString("latin1"));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
