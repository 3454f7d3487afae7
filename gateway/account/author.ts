/** Who asks, as logs of changes name them. */
import type { Author } from "../../schemas/oauth/oauth-client.ts";
import type { Caller } from "../http/locals.ts";

/** Of what a person lets a client do, the person. */
export function authorOf({ tokenId, userId, clientId }: Caller): Author {
  if (userId === undefined) return { type: "api_token", id: tokenId };
  return { type: "user", id: userId, ...(clientId !== undefined && { clientId }) };
}
