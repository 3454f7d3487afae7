/** State of the authorization server's keys. */
import { z } from "zod";
import { OAuthKeys } from "../../../schemas/oauth/oauth-keys.ts";

export const OAuthKeysState = z.object({ keys: OAuthKeys.nullable() });
export type OAuthKeysState = z.infer<typeof OAuthKeysState>;
