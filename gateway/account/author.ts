/** Names the author of a change in change logs. */
import type { Author } from "../../schemas/oauth/oauth-client.ts";
import type { Caller } from "../http/locals.ts";

/** The author of a change that an OAuth client makes is its user. */
export function authorOf({ tokenId, userId, clientId }: Caller): Author {
  if (userId === undefined) return { type: "api_token", id: tokenId };
  return { type: "user", id: userId, ...(clientId !== undefined && { clientId }) };
}
