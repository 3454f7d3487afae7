/** Wire shapes of OAuth clients, their changes, and scopes. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { PAGE_ENTRIES, PAGE_ENTRIES_MAX } from "../../limits.ts";
import { Id } from "../../values.ts";
import { CLIENT_SECRETS_MAX, OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../limits.ts";
import { AuditAction, Author, VerificationStatus, Visibility } from "../oauth-client.ts";
import {
  AuthMethod,
  CLIENT_FIELDS,
  type ClientSettings,
  type ClientSettingsPatch,
  GrantType,
  settingsFaults,
} from "../oauth-client-settings.ts";
import { Scope } from "../scopes.ts";

export const OAuthClientPath = z.strictObject({ account_id: Id, client_id: Id });

const Cursor = z
  .string()
  .min(1)
  .max(128)
  .optional()
  .describe("The cursor of the previous response");
const limit = (preset: number) =>
  z.coerce.number().pipe(z.int().min(1).max(PAGE_ENTRIES_MAX)).default(preset);

/** Without parameters a listing contains all clients, because clients of the public API expect this. */
export const OAuthClientsQuery = z.strictObject({
  cursor: Cursor,
  limit: limit(OAUTH_CLIENTS_PER_ACCOUNT_MAX).describe("Maximum number of clients in the response"),
  page: listingFields.page.unwrap().optional().describe("Page number, instead of a cursor"),
  per_page: listingFields.per_page.unwrap().optional(),
});
export type OAuthClientsQuery = z.output<typeof OAuthClientsQuery>;

export const OAuthChangesQuery = z.strictObject({
  cursor: Cursor,
  limit: limit(PAGE_ENTRIES).describe("Maximum number of changes in the response"),
});
export type OAuthChangesQuery = z.output<typeof OAuthChangesQuery>;

const { required, lists, links } = CLIENT_FIELDS;

const requiredFields = {
  client_name: required.clientName.describe("The name that the consent page shows to users"),
  grant_types: required.grantTypes.describe("authorization_code, with or without refresh_token"),
  response_types: required.responseTypes,
  redirect_uris: required.redirectUris.describe(
    "Compared exactly. https; http on 127.0.0.1, [::1] or localhost, with any port; a scheme with a dot for clients without a secret",
  ),
  scopes: required.scopes.describe(
    "The scopes that the client may request: ids from GET /oauth/scopes",
  ),
  token_endpoint_auth_method: required.tokenEndpointAuthMethod.describe(
    "none: it has no secret, and must use PKCE",
  ),
};

const listFields = {
  post_logout_redirect_uris: lists.postLogoutRedirectUris.describe(
    "Follows the rules of redirect_uris",
  ),
  optional_scopes: lists.optionalScopes.describe(
    "Those of scopes that people may decline; not openid, nor offline_access",
  ),
  allowed_cors_origins: lists.allowedCorsOrigins.describe(
    "Whose scripts may use the token endpoint",
  ),
};

const linkFields = {
  logo_uri: links.logoUri.nullish(),
  policy_uri: links.policyUri.nullish(),
  tos_uri: links.tosUri.nullish(),
  client_uri: links.clientUri
    .nullish()
    .describe("Its host must be verified before the client can be public"),
};

const example = {
  client_name: "Build Bot",
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  redirect_uris: ["https://bot.example.com/callback"],
  scopes: ["artifacts.read", "artifacts.write"],
  optional_scopes: ["artifacts.write"],
  token_endpoint_auth_method: "client_secret_basic",
  client_uri: "https://bot.example.com",
};

const Fields = z.strictObject({
  ...requiredFields,
  ...z.object(listFields).partial().shape,
  ...linkFields,
});
type Fields = z.output<typeof Fields>;

export const CreateOAuthClient = Fields.superRefine((fields, context) => {
  for (const { path, text } of settingsFaults(settingsOf(fields))) {
    context.addIssue({ code: "custom", path, message: text });
  }
}).meta({ examples: [example] });
export type CreateOAuthClient = z.output<typeof CreateOAuthClient>;

export const UpdateOAuthClient = z
  .strictObject({
    ...z.object({ ...requiredFields, ...listFields }).partial().shape,
    ...linkFields,
    visibility: Visibility.optional().describe(
      "public: for everybody, and for good. It then needs a logo, a scope, and a client URL with a verified host",
    ),
  })
  .meta({
    examples: [{ client_name: "Build Bot 2", logo_uri: "https://bot.example.com/logo.png" }],
  });
export type UpdateOAuthClient = z.output<typeof UpdateOAuthClient>;

/** Converts a request to a registration. Absent lists become empty. */
export function settingsOf(fields: Fields): ClientSettings {
  const {
    logo_uri: logoUri,
    policy_uri: policyUri,
    tos_uri: tosUri,
    client_uri: clientUri,
  } = fields;
  return {
    clientName: fields.client_name,
    grantTypes: fields.grant_types,
    responseTypes: fields.response_types,
    redirectUris: fields.redirect_uris,
    postLogoutRedirectUris: fields.post_logout_redirect_uris ?? [],
    scopes: fields.scopes,
    optionalScopes: fields.optional_scopes ?? [],
    tokenEndpointAuthMethod: fields.token_endpoint_auth_method,
    allowedCorsOrigins: fields.allowed_cors_origins ?? [],
    ...(logoUri && { logoUri }),
    ...(policyUri && { policyUri }),
    ...(tosUri && { tosUri }),
    ...(clientUri && { clientUri }),
  };
}

/** Converts a request to a patch. Absent fields keep their values; null removes a value. */
export function patchOf(fields: UpdateOAuthClient): ClientSettingsPatch {
  return {
    clientName: fields.client_name,
    grantTypes: fields.grant_types,
    responseTypes: fields.response_types,
    redirectUris: fields.redirect_uris,
    postLogoutRedirectUris: fields.post_logout_redirect_uris,
    scopes: fields.scopes,
    optionalScopes: fields.optional_scopes,
    tokenEndpointAuthMethod: fields.token_endpoint_auth_method,
    allowedCorsOrigins: fields.allowed_cors_origins,
    logoUri: fields.logo_uri,
    policyUri: fields.policy_uri,
    tosUri: fields.tos_uri,
    clientUri: fields.client_uri,
  };
}

const Time = z.iso.datetime();

export const WireOAuthClient = z.object({
  client_id: Id,
  client_name: z.string(),
  visibility: Visibility.describe("private: only members of the account can authorize it"),
  grant_types: z.array(GrantType),
  response_types: z.array(z.literal("code")),
  redirect_uris: z.array(z.string()),
  post_logout_redirect_uris: z.array(z.string()),
  scopes: z.array(Scope),
  optional_scopes: z.array(Scope),
  token_endpoint_auth_method: AuthMethod,
  allowed_cors_origins: z.array(z.string()),
  logo_uri: z.string().optional(),
  policy_uri: z.string().optional(),
  tos_uri: z.string().optional(),
  client_uri: z.string().optional(),
  client_uri_verification: z
    .object({
      status: VerificationStatus,
      text: z.string().describe("The exact text of the TXT record that the host must have"),
      host: z.string(),
      last_answer: z.string().optional().describe("What the DNS server last answered"),
      last_checked_at: Time.optional(),
      next_check_at: Time.optional(),
      verified_at: Time.optional(),
      missing_since: Time.optional().describe("The time when the record was first found missing"),
    })
    .optional(),
  has_rotated_secret: z
    .boolean()
    .describe("Whether the client has two secrets; the older one can then be deleted"),
  secrets: z
    .array(
      z.object({
        last_four: z.string(),
        created_at: Time,
        last_used_at: Time.optional().describe("Accurate to one hour"),
      }),
    )
    .max(CLIENT_SECRETS_MAX)
    .describe("Oldest first"),
  created_at: Time,
  updated_at: Time,
  promoted_at: Time.optional().describe("The time when the client became public"),
});

const Secret = z.string().meta({ secret: true }).describe("Shown only in this response");

export const CreatedOAuthClient = WireOAuthClient.extend({ client_secret: Secret.optional() });
export const RotatedSecret = z.object({ client_secret: Secret });
export const DeletedOAuthClient = z.object({ id: Id });

const Change = z.object({
  field: z.string(),
  from: z.string().nullable().describe("JSON, shortened if it is long; null if there was no value"),
  to: z.string().nullable(),
});
export const WireOAuthChange = z.object({
  number: z.int(),
  at: Time,
  by: Author.describe("The author of the change; `system` is the platform itself"),
  action: AuditAction,
  changes: z.array(Change),
});

export const WireAllowance = z.object({
  user: z.object({
    id: Id,
    email: z
      .string()
      .optional()
      .describe("Present only if the caller may read the members (account.read)"),
  }),
  scopes: z.array(Scope).describe("The scopes that the member granted"),
  declined_scopes: z.array(Scope).describe("The requested scopes that the member declined"),
  is_for_this_account: z.boolean().describe("Whether the member granted access to this account"),
});

export const WireScope = z.object({
  id: Scope,
  name: z.string(),
  category: z.string(),
  description: z.string(),
});
