/** Describes the endpoints and flows of the authorization server in the OpenAPI document. */
import { ALL_SCOPES, SCOPES } from "../../schemas/oauth/scopes.ts";

type Json = Record<string, unknown>;

const TAG = "OAuth";

/** The OAuth flow that gives a client a token for a person's account. */
export function oauthScheme(publicUrl: string): Json {
  return {
    type: "oauth2",
    description: "An OAuth access token of a registered client",
    flows: {
      authorizationCode: {
        authorizationUrl: `${publicUrl}/oauth2/auth`,
        tokenUrl: `${publicUrl}/oauth2/token`,
        refreshUrl: `${publicUrl}/oauth2/token`,
        scopes: Object.fromEntries(ALL_SCOPES.map((id) => [id, SCOPES[id].description])),
      },
    },
  };
}

/** The security schemes with which clients authenticate at the endpoints for programs. */
export const CLIENT_SCHEMES: Json = {
  clientBasic: {
    type: "http",
    scheme: "basic",
    description: "client_id and client_secret (client_secret_basic)",
  },
};

export const OAUTH_TAG: Json = {
  name: TAG,
  description: "The authorization server: OAuth 2.0, PKCE and OpenID Connect",
};

/** These paths are outside /v4, so each names its own server. */
export function oauthPaths(publicUrl: string): Record<string, Json> {
  const servers = [{ url: publicUrl }];
  const authorize = {
    ...operation("authorize", "Ask a person for authorization (RFC 6749 section 4.1.1)"),
    parameters: queryOf(
      {
        response_type: { type: "string", enum: ["code"] },
        client_id: CLIENT_ID,
        redirect_uri: { type: "string", format: "uri" },
        scope: TEXT,
        state: TEXT,
        nonce: TEXT,
        code_challenge: TEXT,
        code_challenge_method: { type: "string", enum: ["S256"] },
        prompt: { type: "string", enum: ["none", "login", "consent", "login consent"] },
      },
      ["response_type", "client_id", "redirect_uri"],
    ),
    responses: {
      "303": { description: "Redirects to sign-in, to consent, or back to the client" },
      "400": page("The request is invalid; a page says why"),
      "429": page("Too many requests from this address"),
      "503": page("No actor could answer in time; try again"),
    },
  };
  const metadata = (id: string, summary: string) => ({
    get: {
      ...operation(id, summary),
      responses: { "200": json("The metadata", METADATA) },
    },
  });
  return Object.fromEntries(
    Object.entries<Json>({
      "/.well-known/oauth-authorization-server": metadata(
        "getAuthorizationServerMetadata",
        "Metadata of the authorization server (RFC 8414)",
      ),
      "/.well-known/openid-configuration": metadata(
        "getOpenIdConfiguration",
        "Metadata as OpenID Connect Discovery names it",
      ),
      "/.well-known/jwks.json": {
        get: {
          ...operation("getSigningKeys", "Public keys that sign ID tokens (RFC 7517)"),
          responses: { "200": json("The keys", KEYS) },
        },
      },
      "/oauth2/auth": { get: authorize },
      "/oauth2/token": { post: tokenOperation() },
      "/oauth2/revoke": {
        post: {
          ...operation("revokeToken", "Revoke a token (RFC 7009)"),
          ...byClient(TOKEN_FORM),
          responses: { "200": { description: "The token is revoked" }, ...REFUSED },
        },
      },
      "/oauth2/introspect": {
        post: {
          ...operation("introspectToken", "Look at a token of the same client (RFC 7662)"),
          ...byClient(TOKEN_FORM),
          responses: { "200": json("What the token opens", INTROSPECTED), ...REFUSED },
        },
      },
      "/oauth2/userinfo": {
        get: {
          ...operation("getUserinfo", "Claims about the person (OpenID Connect Core 5.3)"),
          security: [{ oauth: ["openid"] }],
          responses: { "200": json("The claims", CLAIMS), ...REFUSED },
        },
      },
      "/oauth2/logout": {
        get: {
          ...operation("logout", "Sign a person out (OpenID Connect RP-Initiated Logout)"),
          parameters: queryOf({
            id_token_hint: TEXT,
            client_id: CLIENT_ID,
            post_logout_redirect_uri: { type: "string", format: "uri" },
            state: TEXT,
          }),
          responses: {
            "200": page("Asks the person to confirm"),
            "400": page("The request is invalid; a page says why"),
          },
        },
      },
    }).map(([path, item]) => [path, { servers, ...item }]),
  );
}

const TEXT = { type: "string" };
const CLIENT_ID = { type: "string", pattern: "^[0-9a-f]{32}$" };
const CLIENT_FIELDS = { client_id: CLIENT_ID, client_secret: TEXT };
const TOKEN_FORM = objectOf("TokenForm", { token: TEXT, token_type_hint: TEXT, ...CLIENT_FIELDS }, [
  "token",
]);
const KEYS = objectOf("SigningKeys", { keys: { type: "array", items: {} } });
const METADATA = objectOf("OAuthMetadata", {
  issuer: { type: "string", format: "uri" },
  authorization_endpoint: { type: "string", format: "uri" },
  token_endpoint: { type: "string", format: "uri" },
});
const INTROSPECTED = objectOf(
  "TokenIntrospection",
  {
    active: { type: "boolean" },
    scope: TEXT,
    client_id: TEXT,
    sub: TEXT,
    exp: { type: "integer" },
  },
  ["active"],
);
const CLAIMS = objectOf(
  "UserClaims",
  { sub: TEXT, email: TEXT, email_verified: { type: "boolean" } },
  ["sub"],
);
const FAILED = objectOf("OAuthFailure", { error: TEXT, error_description: TEXT }, ["error"]);
const REFUSED = {
  "400": json("The request is invalid", FAILED),
  "401": json("The client or token is unknown", FAILED),
  "429": json("Too many unknown clients or tokens from this address", FAILED),
  "503": json("No actor could answer in time; try again", FAILED),
};

function tokenOperation(): Json {
  const fields = {
    grant_type: { type: "string", enum: ["authorization_code", "refresh_token"] },
    code: TEXT,
    redirect_uri: { type: "string", format: "uri" },
    code_verifier: TEXT,
    refresh_token: TEXT,
    scope: TEXT,
    ...CLIENT_FIELDS,
  };
  const tokens = objectOf(
    "OAuthTokens",
    {
      access_token: TEXT,
      token_type: { type: "string", enum: ["Bearer"] },
      expires_in: { type: "integer" },
      refresh_token: TEXT,
      id_token: TEXT,
      scope: TEXT,
    },
    ["access_token", "token_type", "expires_in"],
  );
  return {
    ...operation("exchangeToken", "Exchange a code or refresh token (RFC 6749 sections 4.1.3, 6)"),
    ...byClient(objectOf("GrantForm", fields, ["grant_type"])),
    responses: {
      "200": json("Tokens", tokens),
      ...REFUSED,
      "429": json("Too many refreshes, or unknown clients or tokens from this address", FAILED),
    },
  };
}

/**
 * Returns the description of a form body. The client authenticates in the header or in the form. A public client
 * sends only its id.
 */
function byClient(schema: Json): Json {
  return {
    security: [{ clientBasic: [] }, {}],
    requestBody: {
      required: true,
      content: { "application/x-www-form-urlencoded": { schema } },
    },
  };
}

function operation(operationId: string, summary: string): Json {
  return { operationId, tags: [TAG], summary, security: [] };
}

function queryOf(properties: Json, required: readonly string[] = []): Json[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function objectOf(title: string, properties: Json, required: readonly string[] = []): Json {
  return { title, type: "object", properties, ...(required.length > 0 && { required }) };
}

function json(description: string, schema: Json): Json {
  return { description, content: { "application/json": { schema } } };
}

function page(description: string): Json {
  return { description, content: { "text/html": {} } };
}
