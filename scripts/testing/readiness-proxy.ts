/**
 * A load balancer for tests. It sends each request to a server whose health check passes, over keep-alive
 * connections.
 */
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

/** How often the proxy checks the health of each server. */
const CHECK_MS = 200;
const CHECK_MS_MAX = 2_000;

export class ReadinessProxy implements AsyncDisposable {
  /** Descriptions of requests that reached no server, or whose response was interrupted. */
  readonly broken: string[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));
  readonly #stopped = new AbortController();
  /** The servers, and whether each was ready at the last health check. */
  readonly #servers = new Map<string, boolean>();
  #turn = 0;
  #watching: Promise<void> = Promise.resolve();

  static async start(urls: readonly string[]): Promise<ReadinessProxy> {
    const proxy = new ReadinessProxy();
    for (const url of urls) proxy.add(url);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    await proxy.#look();
    proxy.#watching = proxy.#watch();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  add(url: string): void {
    this.#servers.set(url, false);
  }

  remove(url: string): void {
    this.#servers.delete(url);
  }

  isReady(url: string): boolean {
    return this.#servers.get(url) === true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#watching;
    this.#agent.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const ready = [...this.#servers].flatMap(([url, isReady]) => (isReady ? [url] : []));
    this.#turn += 1;
    const server = ready[this.#turn % ready.length];
    const what = `${incoming.method} ${incoming.url}`;
    if (server === undefined) {
      this.#fail(outgoing, `${what}: no server is ready`);
      return;
    }
    const { method = "GET", url = "/", headers } = incoming;
    const forwarded = request(new URL(url, server), { method, headers, agent: this.#agent });
    forwarded.on("response", (answer) => {
      const { "keep-alive": _, connection: __, ...kept } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, kept);
      answer.on("error", (error) => this.#fail(outgoing, `${what} at ${server}: ${error.message}`));
      answer.pipe(outgoing);
    });
    forwarded.on("error", (error) =>
      this.#fail(outgoing, `${what} at ${server}: ${error.message}`),
    );
    incoming.pipe(forwarded);
  }

  #fail(outgoing: ServerResponse, reason: string): void {
    this.broken.push(reason);
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end(reason);
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await wait(CHECK_MS, undefined, { signal }).catch(() => {}); // It is stopped.
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(CHECK_MS_MAX)]);
    await Promise.all(
      Array.from(this.#servers.keys(), async (url) => {
        const isReady = await fetch(`${url}/healthz`, { signal }).then(
          async (answer) => {
            await answer.text();
            return answer.ok;
          },
          () => false,
        );
        if (this.#servers.has(url)) this.#servers.set(url, isReady);
      }),
    );
  }
}
