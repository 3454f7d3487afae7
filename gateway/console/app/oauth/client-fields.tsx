/** The fields of an OAuth client, in the order in which a person decides about them. */
import type { WireOAuthClient, WireScope } from "../lib/wire.ts";
import { CheckGroup, RadioGroup, TextField } from "../parts/form.tsx";

/** What a person enters; lists are lines of a text. */
export interface ClientDraft {
  name: string;
  grantTypes: string[];
  method: string;
  redirectUris: string;
  scopes: string[];
  optionalScopes: string[];
  postLogoutRedirectUris: string;
  corsOrigins: string;
  clientUri: string;
  logoUri: string;
  policyUri: string;
  tosUri: string;
}

export const EMPTY_DRAFT: ClientDraft = {
  name: "",
  grantTypes: ["authorization_code", "refresh_token"],
  method: "client_secret_basic",
  redirectUris: "",
  scopes: [],
  optionalScopes: [],
  postLogoutRedirectUris: "",
  corsOrigins: "",
  clientUri: "",
  logoUri: "",
  policyUri: "",
  tosUri: "",
};

export const draftOf = (client: WireOAuthClient): ClientDraft => ({
  name: client.client_name,
  grantTypes: client.grant_types,
  method: client.token_endpoint_auth_method,
  redirectUris: client.redirect_uris.join("\n"),
  scopes: client.scopes,
  optionalScopes: client.optional_scopes,
  postLogoutRedirectUris: client.post_logout_redirect_uris.join("\n"),
  corsOrigins: client.allowed_cors_origins.join("\n"),
  clientUri: client.client_uri ?? "",
  logoUri: client.logo_uri ?? "",
  policyUri: client.policy_uri ?? "",
  tosUri: client.tos_uri ?? "",
});

/** The body of a request that registers or changes a client. */
export function requestOf(draft: ClientDraft) {
  return {
    client_name: draft.name,
    response_types: ["code"],
    grant_types: draft.grantTypes,
    token_endpoint_auth_method: draft.method,
    redirect_uris: linesOf(draft.redirectUris),
    scopes: draft.scopes,
    optional_scopes: draft.optionalScopes.filter((scope) => draft.scopes.includes(scope)),
    post_logout_redirect_uris: linesOf(draft.postLogoutRedirectUris),
    allowed_cors_origins: linesOf(draft.corsOrigins),
  };
}

/** Only what is named: sending client_uri again would ask for its verification again. */
export function linksOf(draft: ClientDraft, before?: WireOAuthClient) {
  const all = {
    client_uri: draft.clientUri,
    logo_uri: draft.logoUri,
    policy_uri: draft.policyUri,
    tos_uri: draft.tosUri,
  };
  const changed = Object.entries(all).filter(
    ([name, value]) => value !== (before?.[name as keyof typeof all] ?? ""),
  );
  return Object.fromEntries(changed.map(([name, value]) => [name, value === "" ? null : value]));
}

const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

interface FieldsProps {
  draft: ClientDraft;
  onChange: (change: Partial<ClientDraft>) => void;
  scopes: readonly WireScope[];
}

export function ClientFields({ draft, onChange, scopes }: FieldsProps) {
  return (
    <>
      <TextField
        label="Name"
        hint="People see it when they are asked"
        pointer="/client_name"
        value={draft.name}
        onChange={(name) => onChange({ name })}
        required
      />
      <RadioGroup
        label="Response type"
        pointer="/response_types"
        value="code"
        onChange={() => {}}
        choices={[
          {
            value: "code",
            label: "Authorization code",
            hint: "The one type that is safe, and offered",
          },
        ]}
      />
      <CheckGroup
        label="Grant types"
        pointer="/grant_types"
        chosen={draft.grantTypes}
        onChange={(grantTypes) => onChange({ grantTypes })}
        choices={[
          {
            value: "authorization_code",
            label: "Authorization code",
            hint: "A person signs in and allows it",
          },
          {
            value: "refresh_token",
            label: "Refresh token",
            hint: "It keeps its access for longer than an hour",
          },
        ]}
      />
      <RadioGroup
        label="Token authentication method"
        pointer="/token_endpoint_auth_method"
        value={draft.method}
        onChange={(method) => onChange({ method })}
        choices={[
          {
            value: "client_secret_basic",
            label: "Secret in the header",
            hint: "client_secret_basic: for programs on a server",
          },
          {
            value: "client_secret_post",
            label: "Secret in the body",
            hint: "client_secret_post: for libraries that cannot send the header",
          },
          {
            value: "none",
            label: "No secret, with PKCE",
            hint: "none: for programs on a device or in a browser",
          },
        ]}
      />
      <TextField
        label="Redirect URLs"
        hint="One a line. People come back there with a code; the comparison is exact."
        pointer="/redirect_uris"
        rows={3}
        isCode
        placeholder="https://bot.example.com/callback"
        value={draft.redirectUris}
        onChange={(redirectUris) => onChange({ redirectUris })}
        required
      />
      <ScopeFields draft={draft} onChange={onChange} scopes={scopes} />
    </>
  );
}

function ScopeFields({ draft, onChange, scopes }: FieldsProps) {
  const categories = [...new Set(scopes.map(({ category }) => category))];
  return (
    <fieldset>
      <legend>Scopes</legend>
      <span class="quiet hint">What it may ask people for: at least one.</span>
      <div class="choices-columns">
        {categories.map((category) => (
          <CheckGroup
            key={category}
            label={category}
            pointer="/scopes"
            chosen={draft.scopes}
            onChange={(chosen) => onChange({ scopes: chosen })}
            choices={scopes
              .filter((scope) => scope.category === category)
              .map(({ id, name, description }) => ({ value: id, label: name, hint: description }))}
          />
        ))}
      </div>
    </fieldset>
  );
}

/** Fields that most clients do without. */
export function MoreClientFields({ draft, onChange, scopes }: FieldsProps) {
  const isOptional = ({ id }: WireScope) =>
    draft.scopes.includes(id) && id !== "openid" && id !== "offline_access";
  const url = (
    label: string,
    pointer: string,
    field: "clientUri" | "logoUri" | "policyUri" | "tosUri",
    hint?: string,
  ) => (
    <TextField
      label={label}
      pointer={pointer}
      type="url"
      value={draft[field]}
      onChange={(value) => onChange({ [field]: value })}
      {...(hint && { hint })}
    />
  );
  return (
    <details>
      <summary>Links, optional scopes and origins</summary>
      {url(
        "Client URL",
        "/client_uri",
        "clientUri",
        "Its domain must be verified before the client can be public",
      )}
      {url("Logo URL", "/logo_uri", "logoUri")}
      {url("Privacy policy URL", "/policy_uri", "policyUri")}
      {url("Terms URL", "/tos_uri", "tosUri")}
      <CheckGroup
        label="Optional scopes"
        hint="People may decline these, and allow the rest."
        pointer="/optional_scopes"
        chosen={draft.optionalScopes}
        onChange={(optionalScopes) => onChange({ optionalScopes })}
        choices={scopes.filter(isOptional).map(({ id, name }) => ({ value: id, label: name }))}
      />
      <TextField
        label="Origins of scripts"
        hint="One a line: pages whose scripts may use the token endpoint."
        pointer="/allowed_cors_origins"
        rows={2}
        isCode
        value={draft.corsOrigins}
        onChange={(corsOrigins) => onChange({ corsOrigins })}
      />
      <TextField
        label="Redirect URLs after sign-out"
        pointer="/post_logout_redirect_uris"
        rows={2}
        isCode
        value={draft.postLogoutRedirectUris}
        onChange={(postLogoutRedirectUris) => onChange({ postLogoutRedirectUris })}
      />
    </details>
  );
}
