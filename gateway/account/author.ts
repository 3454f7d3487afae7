/** Names the author of a change in change logs. */
import type { Author } from "../../schemas/oauth/oauth-client.ts";
import type { Caller } from "../http/locals.ts";

/** Returns the caller as the author of a change. If an OAuth client makes the change, the author is its user. */
export function authorOf({ tokenId, userId, clientId }: Caller): Author {
  if (userId === undefined) return { type: "api_token", id: tokenId };
  return { type: "user", id: userId, ...(clientId !== undefined && { clientId }) };
}
