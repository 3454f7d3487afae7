/** REST routes to list and end the sessions of a person. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { EndedSession, SessionPath, WireSession } from "../../../schemas/account/http/sessions.ts";
import { session } from "../../../schemas/account/session.ts";
import { user } from "../../../schemas/account/user.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { callFew } from "../../http/call-few.ts";
import type { Caller } from "../../http/locals.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";

const SESSIONS_TAG: Tag = {
  name: "Sessions",
  description: "Browsers in which a person is signed in",
};

const LIST_SESSIONS = {
  tag: SESSIONS_TAG,
  method: "get",
  path: "/user/sessions",
  id: "listSessions",
  summary:
    "List the browsers in which the user is signed in, latest first (needs a session; tokens are refused)",
  permissions: ["account.read"],
  isOfPerson: true,
  parameters: nothing,
  query: nothing,
  refusals: ["not_found"],
  answer: { result: WireSession.array() },
} as const;

const END_SESSION = {
  tag: SESSIONS_TAG,
  method: "delete",
  path: "/user/sessions/{session_id}",
  id: "endSession",
  isRevocation: true,
  summary: "Sign the user out of one browser (needs a session; tokens are refused)",
  permissions: ["account.write"],
  isOfPerson: true,
  parameters: SessionPath,
  query: nothing,
  answer: { result: EndedSession },
} as const;

/** The REST routes of a person's sessions. */
export function sessionRoutes(actors: ActorClient): Route[] {
  return [
    defineRoute({ ...LIST_SESSIONS, handle: listSessions(actors) }),
    defineRoute({ ...END_SESSION, handle: endSession(actors) }),
  ];
}

function listSessions(actors: ActorClient) {
  return async ({ caller }: RouteRequest) => {
    const { userId, email } = personOf(caller);
    const { sessionIds } = await actors.call(user, email, "listSessions", { userId });
    const found = await callFew(sessionIds, (id) =>
      describe(actors, { id, userId, current: caller.session?.id }),
    );
    return { result: found.filter((one) => one !== undefined).toReversed() };
  };
}

function endSession(actors: ActorClient) {
  return async ({ caller, parameters }: RouteRequest<z.output<typeof SessionPath>>) => {
    const { session_id: id } = parameters;
    const { userId } = personOf(caller);
    // This call refuses a session of another person.
    await actors.call(session, id, "describe", { userId });
    await actors.call(session, id, "end", {});
    return { result: { id } };
  };
}

/** Resolves to undefined if the session ended a moment ago. */
async function describe(
  actors: ActorClient,
  { id, userId, current }: { id: string; userId: string; current: string | undefined },
): Promise<z.input<typeof WireSession> | undefined> {
  try {
    const { authenticatedAt, expiresAt } = await actors.call(session, id, "describe", { userId });
    return {
      id,
      signed_in_at: new Date(authenticatedAt).toISOString(),
      expires_at: new Date(expiresAt).toISOString(),
      is_current: id === current,
    };
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

/**
 * Returns the person of the caller's session. A person's sessions give access to all accounts of the person. A token
 * belongs to one account, so no token may list or end sessions.
 */
function personOf({ userId, session: own }: Caller) {
  if (own && userId !== undefined) return { userId, email: own.email };
  throw new Error("Cannot name the person: isOfPerson lets sessions alone through");
}
