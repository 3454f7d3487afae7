/** The fields of an OAuth client, in the order in which a person decides about them. */

import { RestError } from "../lib/rest.ts";
import type { WireOAuthClient, WireScope } from "../lib/wire.ts";
import { type Choice, type Field, Fields, type FormState, linesOf } from "../parts/form.tsx";

/** What a person enters; lists are lines of a text. */
export interface ClientDraft {
  responseType: string;
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
  responseType: "code",
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
  responseType: "code",
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

/** Refuses in the words of the page. */
export function checkDraft({ scopes, grantTypes }: ClientDraft): void {
  const faults = [
    scopes.length === 0 && ["/scopes", "Select at least one scope."],
    !grantTypes.includes("authorization_code") && [
      ...["/grant_types", "Authorization code is needed: a refresh token follows from it."],
    ],
  ].filter((fault) => fault !== false);
  if (faults.length === 0) return;
  throw new RestError(
    400,
    faults.map(([pointer = "", message = ""]) => ({ message, source: { pointer } })),
  );
}

const FIELDS: readonly Field<ClientDraft>[] = [
  {
    ...{ name: "name", label: "Name", pointer: "/client_name", required: true },
    hint: "People see it when they are asked",
  },
  {
    ...{ name: "responseType", label: "Response type", pointer: "/response_types" },
    choices: [["code", "Authorization code", "The one type that is safe, and offered"]],
  },
  {
    ...{ name: "grantTypes", label: "Grant types", pointer: "/grant_types" },
    choices: [
      ["authorization_code", "Authorization code", "A person signs in and allows it"],
      ["refresh_token", "Refresh token", "It keeps its access for longer than an hour"],
    ],
  },
  {
    ...{ name: "method", label: "Token authentication method" },
    pointer: "/token_endpoint_auth_method",
    choices: [
      [
        "client_secret_basic",
        "Secret in the header",
        "client_secret_basic: for programs on a server",
      ],
      [
        "client_secret_post",
        "Secret in the body",
        "client_secret_post: for libraries that cannot send the header",
      ],
      ["none", "No secret, with PKCE", "none: for programs on a device or in a browser"],
    ],
  },
  {
    ...{ name: "redirectUris", label: "Redirect URLs", pointer: "/redirect_uris" },
    hint: "One a line. People come back there with a code; the comparison is exact.",
    ...{ rows: 3, isCode: true, required: true, placeholder: "https://bot.example.com/callback" },
  },
];

const MORE_FIELDS: readonly Field<ClientDraft>[] = [
  {
    ...{ name: "corsOrigins", label: "Origins of scripts", pointer: "/allowed_cors_origins" },
    hint: "One a line: pages whose scripts may use the token endpoint.",
    ...{ rows: 2, isCode: true },
  },
  {
    ...{ name: "postLogoutRedirectUris", label: "Redirect URLs after sign-out" },
    ...{ pointer: "/post_logout_redirect_uris", rows: 2, isCode: true },
  },
];

const LINKS: readonly Field<ClientDraft>[] = [
  {
    ...{ name: "clientUri", label: "Client URL", pointer: "/client_uri", type: "url" },
    hint: "Its domain must be verified before the client can be public",
  },
  { name: "logoUri", label: "Logo URL", pointer: "/logo_uri", type: "url" },
  { name: "policyUri", label: "Privacy policy URL", pointer: "/policy_uri", type: "url" },
  { name: "tosUri", label: "Terms URL", pointer: "/tos_uri", type: "url" },
];

interface FieldsProps {
  form: FormState<ClientDraft>;
  scopes: readonly WireScope[];
}

/** The fields, and behind a summary those that most clients do without. */
export function ClientFields({ form, scopes }: FieldsProps) {
  const chosen = form.values.scopes;
  const isOptional = ({ id }: WireScope) =>
    chosen.includes(id) && id !== "openid" && id !== "offline_access";
  const optional: Field<ClientDraft> = {
    ...{ name: "optionalScopes", label: "Optional scopes", pointer: "/optional_scopes" },
    hint: "People may decline these, and allow the rest.",
    choices: scopes.filter(isOptional).map(({ id, name }): Choice => [id, name]),
  };
  return (
    <>
      <Fields form={form} fields={FIELDS} />
      <fieldset>
        <legend>Scopes</legend>
        <span class="quiet hint">What it may ask people for: at least one.</span>
        <div class="choices-columns">
          {[...new Set(scopes.map(({ category }) => category))].map((category) => (
            <Fields key={category} form={form} fields={[scopesField(scopes, category)]} />
          ))}
        </div>
      </fieldset>
      <details>
        <summary>Links, optional scopes and origins</summary>
        <Fields form={form} fields={[...LINKS, optional, ...MORE_FIELDS]} />
      </details>
    </>
  );
}

const scopesField = (scopes: readonly WireScope[], category: string): Field<ClientDraft> => ({
  ...{ name: "scopes", label: category },
  choices: scopes
    .filter((scope) => scope.category === category)
    .map(({ id, name, description }) => [id, name, description]),
});
