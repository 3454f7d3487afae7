/** Counts the documents that a page asks for, to tell one that never comes to rest from one that is slow. */
import type { Protocol } from "puppeteer-core";
import { sessionOf } from "./page-session.ts";
import type { RenderContext } from "./render-context.ts";

export class NavigationCount implements Disposable {
  /** A redirect of the site goes on with the same document. */
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

  /** How often a document took the place of another. */
  get replacements(): number {
    return Math.max(0, this.#documents.size - 1);
  }

  [Symbol.dispose](): void {
    this.#watching.dispose();
  }
}
