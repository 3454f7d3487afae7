/** Who asks, as logs of changes name them. */
import type { Author } from "../schemas/oauth-client.ts";
import type { Caller } from "./locals.ts";

export const authorOf = ({ tokenId }: Caller): Author => ({ type: "api_token", id: tokenId });
