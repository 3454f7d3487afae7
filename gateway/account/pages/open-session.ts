/** Opens a session for a browser. The user's actor records it before the browser receives its cookie. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { session } from "../../../schemas/account/session.ts";
import { user } from "../../../schemas/account/user.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { Refused } from "../../pages/refused.ts";
import { sessionAddress } from "./browser-cookies.ts";
import { type Person, WRONG } from "./sign-in.ts";

/**
 * Opens the session. `text` is the value of the browser's cookie. Refuses if the password was changed after it was
 * checked.
 */
export async function openSession(actors: ActorClient, text: string, person: Person) {
  const { userId, email, passwordVersion } = person;
  const { id: sessionId, secretHash } = sessionAddress(text);
  await actors.call(session, sessionId, "open", { secretHash, userId, email });
  try {
    // After this call, a password change ends the session.
    await actors.call(user, email, "addSession", { userId, sessionId, passwordVersion });
    const { user: signedIn } = await actors.call(session, sessionId, "get", { secretHash });
    return { sessionId, userId, email, authenticatedAt: signedIn?.authenticatedAt ?? 0 };
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "unauthenticated")) throw error;
    await actors.call(session, sessionId, "end", {});
    throw new Refused(401, WRONG);
  }
}
