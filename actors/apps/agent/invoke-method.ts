/** Calls a method of an agent for a stub or for the REST API. */
import type { z } from "zod";
import type { agent } from "../../../schemas/apps/agent.ts";
import type { TurnInput, TurnResult } from "../../../schemas/apps/app-process.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { readBody, writeValue } from "../lib/app-bodies/body-blobs.ts";
import type { BodyBlobs } from "../lib/app-process/process-bodies.ts";
import { unexpected } from "../lib/app-process/turns.ts";

type Invoke = (typeof agent)["messages"]["invoke"];

interface Callee {
  blobs: BodyBlobs;
  /** The key of the agent's app, which owns the blob of a large result. */
  app: string;
  take(turn: TurnInput): Promise<TurnResult>;
}

/**
 * Takes the turn of the call, and returns its result in the form for a message. Turns begin in the order in which
 * calls arrived, except that a call whose arguments must be fetched may begin later.
 */
export async function invokeMethod(
  { args, argsBlob: blob, ...invoked }: DeepReadonly<z.output<Invoke["input"]>>,
  { blobs, app, take }: Callee,
): Promise<z.input<Invoke["reply"]>> {
  const bytes = blob === undefined ? Buffer.from(args, "base64") : await readBody(blobs, { blob });
  const result = await take({ type: "invoke", ...invoked, args: bytes });
  if (result.type !== "invoked") throw unexpected(result);
  const written = await writeValue(blobs, app, result.result);
  return { result: written.base64, resultBlob: written.blob };
}
