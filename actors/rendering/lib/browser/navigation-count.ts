/** Counts the documents that a page requests, to distinguish a page that navigates endlessly from a slow page. */
import type { Protocol } from "puppeteer-core";
import { sessionOf } from "./page-session.ts";
import type { RenderContext } from "./render-context.ts";

export class NavigationCount implements Disposable {
  /** Ids of the requested documents. A redirect by the site keeps the id, so it counts as the same document. */
  readonly #documents = new Set<string>();
  readonly #watching = new DisposableStack();

  constructor({ page, frameId }: Pick<RenderContext, "page" | "frameId">) {
    const session = sessionOf(page);
    const note = (event: Protocol.Network.RequestWillBeSentEvent) => {
      if (event.frameId === frameId && event.requestId === event.loaderId) {
        this.#documents.add(event.requestId);
      }
    };
    session.on("Network.requestWillBeSent", note);
    this.#watching.defer(() => session.off("Network.requestWillBeSent", note));
  }

  /** Returns how often a document replaced another one. */
  get replacements(): number {
    return Math.max(0, this.#documents.size - 1);
  }

  [Symbol.dispose](): void {
    this.#watching.dispose();
  }
}
