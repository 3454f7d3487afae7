/** Evaluates expressions in an isolated world of a page, where redefinitions by the page's scripts have no effect. */

import type { CDPSession, Page, Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { ProtocolError } from "./driver-parts.ts";
import { sessionOf } from "./page-session.ts";

/**
 * With a name, all evaluations share one world. A world without a name would be created anew for each evaluation,
 * which takes a millisecond.
 */
const WORLD_NAME = "trunkline";
/** Chromium's error for a world whose document was replaced. The protocol has one code for all errors. */
const WORLD_GONE = "uniqueContextId not found";

export class IsolatedWorld {
  readonly #session: CDPSession;
  readonly #frameId: string;
  /**
   * The world of the present document, if it exists. This id is unique in the browser; the number of a world may mean
   * a world of the page itself in another process.
   */
  #uniqueId: string | undefined;

  /** `frameId` is the id of the main frame, which stays the same across navigations. */
  constructor(page: Page, { session, frameId }: { session: CDPSession; frameId: string }) {
    this.#session = session;
    this.#frameId = frameId;
    // Only puppeteer's session reports worlds. Our session would report them once more.
    sessionOf(page)
      .on("Runtime.executionContextCreated", ({ context }) => {
        if (context.name === WORLD_NAME && context.auxData?.frameId === frameId) {
          this.#uniqueId = context.uniqueId;
        }
      })
      .on("Runtime.executionContextsCleared", () => {
        this.#uniqueId = undefined;
      });
  }

  /**
   * Returns the value of the expression. All expressions share one world, so a later expression sees the globals of
   * an earlier one until the document changes.
   */
  async evaluate(expression: string): Promise<unknown> {
    const evaluated = this.#evaluate(expression);
    const { result, exceptionDetails } = await evaluated.catch((cause) => {
      const left = cause instanceof ProtocolError && cause.name === "ProtocolError";
      throw left ? unusable("it left while it was used") : cause;
    });
    if (exceptionDetails === undefined) return result.value;
    throw unusable("its document does not answer");
  }

  async #evaluate(expression: string): Promise<Protocol.Runtime.EvaluateResponse> {
    const how = { expression, awaitPromise: true, returnByValue: true };
    const uniqueContextId = this.#uniqueId;
    if (uniqueContextId !== undefined) {
      try {
        return await this.#session.send("Runtime.evaluate", { ...how, uniqueContextId });
      } catch (cause) {
        const isGone = cause instanceof ProtocolError && cause.originalMessage === WORLD_GONE;
        if (!isGone) throw cause;
      }
    }
    const named = { frameId: this.#frameId, worldName: WORLD_NAME };
    const world = await this.#session.send("Page.createIsolatedWorld", named);
    const contextId = world.executionContextId;
    return await this.#session.send("Runtime.evaluate", { ...how, contextId });
  }
}

function unusable(how: string): ActorError {
  return new ActorError("page_navigated_away", `Cannot use the page: ${how}`);
}
