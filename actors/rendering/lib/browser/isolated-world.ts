/** Asks a page something in a world beside its own, where nothing is seen of what its scripts redefine. */
import { type CDPSession, type Protocol, ProtocolError } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";

export interface IsolatedWorld {
  session: CDPSession;
  /** Id of the main frame, which stays the same across navigations. */
  frameId: string;
}

/** The expression's value. */
export async function evaluateApart(world: IsolatedWorld, expression: string): Promise<unknown> {
  const { result, exceptionDetails } = await evaluate(world, expression).catch((cause) => {
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
  const world = await session.send("Page.createIsolatedWorld", { frameId });
  const contextId = world.executionContextId;
  const how = { contextId, awaitPromise: true, returnByValue: true };
  return await session.send("Runtime.evaluate", { expression, ...how });
}

function unusable(how: string): ActorError {
  return new ActorError("page_navigated_away", `Cannot use the page: ${how}`);
}
