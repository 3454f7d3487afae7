/** Evaluates expressions in an isolated world of a page, where redefinitions by the page's scripts have no effect. */

import type { CDPSession, Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { ProtocolError } from "./driver-parts.ts";

export interface IsolatedWorld {
  session: CDPSession;
  /** Id of the main frame, which stays the same across navigations. */
  frameId: string;
}

/**
 * With a name, all evaluations share one world. A world without a name would be created anew for each evaluation,
 * which takes a millisecond.
 */
const WORLD_NAME = "trunkline";

/**
 * Returns the value of the expression. All expressions share one world, so a later expression sees the globals of an
 * earlier one until the document changes.
 */
export async function evaluateApart(world: IsolatedWorld, expression: string): Promise<unknown> {
  const evaluated = evaluate(world, expression);
  const { result, exceptionDetails } = await evaluated.catch((cause) => {
    const left = cause instanceof ProtocolError && cause.name === "ProtocolError";
    throw left ? unusable("it left while it was used") : cause;
  });
  if (exceptionDetails === undefined) return result.value;
  throw unusable("its document does not answer");
}

async function evaluate(
  { session, frameId }: IsolatedWorld,
  expression: string,
): Promise<Protocol.Runtime.EvaluateResponse> {
  const named = { frameId, worldName: WORLD_NAME };
  const world = await session.send("Page.createIsolatedWorld", named);
  const contextId = world.executionContextId;
  const how = { contextId, awaitPromise: true, returnByValue: true };
  return await session.send("Runtime.evaluate", { expression, ...how });
}

function unusable(how: string): ActorError {
  return new ActorError("page_navigated_away", `Cannot use the page: ${how}`);
}
