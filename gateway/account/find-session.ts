/** Finds the person whose session cookie a request carries. */
import type { IncomingMessage } from "node:http";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { session } from "../../schemas/account/session.ts";
import { ActorError } from "../../schemas/errors.ts";
import { type CookieNames, sessionAddress, sessionTextOf } from "./pages/browser-cookies.ts";

export interface SignedIn {
  sessionId: string;
  userId: string;
  email: string;
  authenticatedAt: number;
}

/** Resolves to undefined if nobody is signed in. */
export async function findSession(
  actors: ActorClient,
  request: Pick<IncomingMessage, "headers">,
  cookies: CookieNames,
): Promise<SignedIn | undefined> {
  const text = sessionTextOf(request, cookies);
  if (!text) return undefined;
  const { id, secretHash } = sessionAddress(text);
  try {
    const { user } = await actors.call(session, id, "get", { secretHash });
    return user && { sessionId: id, ...user };
  } catch (error) {
    if (error instanceof ActorError && error.code === "unauthenticated") return undefined;
    throw error;
  }
}
