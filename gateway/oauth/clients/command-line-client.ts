/**
 * The built-in OAuth client of the command line. Every platform has it, so no store contains it and nobody can change
 * or delete it.
 */
import { COMMAND_LINE_CALLBACK, COMMAND_LINE_SCOPES } from "../../../schemas/oauth/command-line.ts";
import type { LiveClient } from "./live-client.ts";

const COMMAND_LINE_NAME = "Trunkline command line";

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
  // No account owns this client. The server checks the account of private clients only.
  accountId: "0".repeat(32),
  visibility: "public",
  secrets: [],
  createdAt: 0,
  updatedAt: 0,
};
