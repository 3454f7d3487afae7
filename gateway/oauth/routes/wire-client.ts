/** OAuth clients and their changes in the form that the REST API returns. */
import type { z } from "zod";
import type { WireOAuthClient } from "../../../schemas/oauth/http/oauth-clients.ts";
import { CLIENT_SECRETS_MAX } from "../../../schemas/oauth/limits.ts";
import type { AuditEntry, ClientEntry } from "../../../schemas/oauth/oauth-client.ts";

const timeOf = (at: number) => new Date(at).toISOString();
export const wireChange = (entry: AuditEntry) => ({ ...entry, at: timeOf(entry.at) });

export function wireClient(clientId: string, entry: ClientEntry): z.input<typeof WireOAuthClient> {
  const { logoUri, policyUri, tosUri, clientUri, promotedAt } = entry;
  return {
    client_id: clientId,
    client_name: entry.clientName,
    visibility: entry.visibility,
    grant_types: entry.grantTypes,
    response_types: entry.responseTypes,
    redirect_uris: entry.redirectUris,
    post_logout_redirect_uris: entry.postLogoutRedirectUris,
    scopes: entry.scopes,
    optional_scopes: entry.optionalScopes,
    token_endpoint_auth_method: entry.tokenEndpointAuthMethod,
    allowed_cors_origins: entry.allowedCorsOrigins,
    ...(logoUri !== undefined && { logo_uri: logoUri }),
    ...(policyUri !== undefined && { policy_uri: policyUri }),
    ...(tosUri !== undefined && { tos_uri: tosUri }),
    ...(clientUri !== undefined && { client_uri: clientUri }),
    ...(entry.verification && { client_uri_verification: wireVerification(entry.verification) }),
    has_rotated_secret: entry.secrets.length === CLIENT_SECRETS_MAX,
    secrets: entry.secrets.map(({ lastFour, createdAt, lastUsedAt }) => ({
      last_four: lastFour,
      created_at: timeOf(createdAt),
      ...(lastUsedAt !== undefined && { last_used_at: timeOf(lastUsedAt) }),
    })),
    created_at: timeOf(entry.createdAt),
    updated_at: timeOf(entry.updatedAt),
    ...(promotedAt !== undefined && { promoted_at: timeOf(promotedAt) }),
  };
}

function wireVerification(verification: NonNullable<ClientEntry["verification"]>) {
  const { status, text, host, lastAnswer } = verification;
  const { lastCheckedAt, nextCheckAt, verifiedAt, missingSince } = verification;
  return {
    status,
    text,
    host,
    ...(lastAnswer !== undefined && { last_answer: lastAnswer }),
    ...(lastCheckedAt !== undefined && { last_checked_at: timeOf(lastCheckedAt) }),
    ...(nextCheckAt !== undefined && { next_check_at: timeOf(nextCheckAt) }),
    ...(verifiedAt !== undefined && { verified_at: timeOf(verifiedAt) }),
    ...(missingSince !== undefined && { missing_since: timeOf(missingSince) }),
  };
}
