/** A web site for tests on a loopback address. It serves pages by path and records all requests. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { startHttpServer } from "./loopback-server.ts";

export interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
}

type Answer = string | ((request: IncomingMessage, response: ServerResponse) => void);

export class WebSite implements AsyncDisposable {
  readonly url: string;
  readonly requests: SeenRequest[] = [];
  readonly #pages = new Map<string, Answer>();
  readonly #server: Awaited<ReturnType<typeof startHttpServer>>;

  static async start(address = "127.0.0.2"): Promise<WebSite> {
    return new WebSite(await startHttpServer(() => {}, address));
  }

  constructor(server: Awaited<ReturnType<typeof startHttpServer>>) {
    this.#server = server;
    this.url = `http://${server.address}:${server.port}`;
    server.server.on("request", (request, response) => this.#answer(request, response));
  }

  get server() {
    return this.#server.server;
  }

  /**
   * Adds a page and returns its URL. A text answer is served as HTML. Other paths respond with 404 and an empty page.
   */
  page(path: string, answer: Answer): string {
    this.#pages.set(path, answer);
    return this.url + path;
  }

  /** Requested paths in order. */
  get paths(): string[] {
    return this.requests.map(({ path }) => path);
  }

  /** Returns the header fields of the latest request for the path. */
  headersOf(path: string): IncomingHttpHeaders {
    const seen = this.requests.findLast((request) => request.path === path);
    if (seen === undefined) throw new Error(`nobody asked for ${path}, but for ${this.paths}`);
    return seen.headers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "", headers } = request;
    this.requests.push({ method, path: url, headers });
    const answer = this.#pages.get(url.split("?")[0] ?? url);
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    if (typeof answer === "function") answer(request, response);
    else response.writeHead(answer === undefined ? 404 : 200).end(answer ?? "<!doctype html>");
  }
}
