/** The command line as an OAuth client. Every platform has it, so it is in no store and nobody can change or delete it. */
import type { z } from "zod";
import {
  COMMAND_LINE_CALLBACK,
  COMMAND_LINE_NAME,
  COMMAND_LINE_SCOPES,
} from "../../schemas/oauth/command-line.ts";
import type { oauthClient } from "../../schemas/oauth/oauth-client.ts";

/** A client as the authorization server uses it. */
export type LiveClient = z.output<(typeof oauthClient.messages.getForAuthorization)["reply"]>;

export const COMMAND_LINE_CLIENT: LiveClient = {
  clientName: COMMAND_LINE_NAME,
  grantTypes: ["authorization_code", "refresh_token"],
  responseTypes: ["code"],
  redirectUris: [COMMAND_LINE_CALLBACK],
  postLogoutRedirectUris: [],
  scopes: [...COMMAND_LINE_SCOPES],
  optionalScopes: COMMAND_LINE_SCOPES.filter((scope) =>
    /^(artifacts|browser-rendering|oauth-clients)\.|^account\.write$/.test(scope),
  ),
  tokenEndpointAuthMethod: "none",
  allowedCorsOrigins: [],
  // No account: only private clients need one.
  accountId: "0".repeat(32),
  visibility: "public",
  secrets: [],
  createdAt: 0,
  updatedAt: 0,
};
