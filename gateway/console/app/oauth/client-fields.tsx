/** The fields of an OAuth client, in the order in which a person decides about them. */
import { RestError } from "../lib/rest.ts";
import { addressOf } from "../lib/router.ts";
import type { WireOAuthClient, WireScope } from "../lib/wire.ts";
import { Button } from "../parts/button.tsx";
import { type Choice, type Field, Fields, type FormState, linesOf } from "../parts/form.tsx";

/** The values of the form, named as in the request. A list of addresses is a text with one address per line. */
export const EMPTY_DRAFT = {
  client_name: "",
  response_types: "code",
  grant_types: ["authorization_code", "refresh_token"],
  token_endpoint_auth_method: "client_secret_basic",
  redirect_uris: "",
  scopes: [] as string[],
  optional_scopes: [] as string[],
  post_logout_redirect_uris: "",
  allowed_cors_origins: "",
  client_uri: "",
  logo_uri: "",
  policy_uri: "",
  tos_uri: "",
};
type ClientDraft = typeof EMPTY_DRAFT;

const LISTS = ["redirect_uris", "post_logout_redirect_uris", "allowed_cors_origins"] as const;
const LINKS = ["client_uri", "logo_uri", "policy_uri", "tos_uri"] as const;

export function draftOf(client: WireOAuthClient): ClientDraft {
  const draft = {
    ...EMPTY_DRAFT,
    client_name: client.client_name,
    grant_types: client.grant_types as string[],
    token_endpoint_auth_method: client.token_endpoint_auth_method as string,
    scopes: client.scopes as string[],
    optional_scopes: client.optional_scopes as string[],
  };
  for (const name of LISTS) draft[name] = client[name].join("\n");
  for (const name of LINKS) draft[name] = client[name] ?? "";
  return draft;
}

/** Returns the body of a request that registers a client. */
export function requestOf(draft: ClientDraft) {
  const given = Object.entries(fieldsOf(draft)).filter(([, value]) => value !== null);
  return Object.fromEntries(given);
}

/**
 * Returns the body of a request that changes a client: only the fields that the person changed. Other fields would
 * undo what somebody else changed meanwhile, and an unchanged client_uri would start its verification again.
 */
export function changesOf(draft: ClientDraft, loaded: ClientDraft) {
  const before = fieldsOf(loaded);
  const changed = Object.entries(fieldsOf(draft)).filter(
    ([name, value]) => comparable(value) !== comparable(before[name]),
  );
  return Object.fromEntries(changed);
}

/** Returns the values as a request names them. A link that is absent is null. */
function fieldsOf(draft: ClientDraft): Record<string, unknown> {
  const { scopes, grant_types, token_endpoint_auth_method, client_name } = draft;
  return {
    ...{ client_name, grant_types, token_endpoint_auth_method, scopes },
    response_types: [draft.response_types],
    optional_scopes: draft.optional_scopes.filter((scope) => scopes.includes(scope)),
    ...Object.fromEntries(LISTS.map((name) => [name, linesOf(draft[name])])),
    ...Object.fromEntries(LINKS.map((name) => [name, draft[name] === "" ? null : draft[name]])),
  };
}

/** The order of a list has no meaning: a box that is unticked and ticked again changes nothing. */
const comparable = (value: unknown) =>
  JSON.stringify(Array.isArray(value) ? value.toSorted() : value);

/** Throws an error for a wrong draft, with messages that fit this page. */
export function checkDraft({ scopes, grant_types: grants }: ClientDraft): void {
  const faults = [
    scopes.length === 0 && ["/scopes", "Select at least one scope."],
    !grants.includes("authorization_code") && [
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
    ...{ name: "client_name", label: "Name", required: true },
    hint: "People see it when they are asked",
  },
  {
    ...{ name: "response_types", label: "Response type" },
    choices: [["code", "Authorization code", "The one type that is safe, and offered"]],
  },
  {
    ...{ name: "grant_types", label: "Grant types" },
    choices: [
      ["authorization_code", "Authorization code", "A person signs in and allows it"],
      ["refresh_token", "Refresh token", "It keeps its access for longer than an hour"],
    ],
  },
  {
    ...{ name: "token_endpoint_auth_method", label: "Token authentication method" },
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
    ...{ name: "redirect_uris", label: "Redirect URLs", rows: 3, isCode: true, required: true },
    hint: "One a line. People come back there with a code; the comparison is exact.",
    placeholder: "https://bot.example.com/callback",
  },
];

const LINK_FIELDS: readonly Field<ClientDraft>[] = [
  {
    ...{ name: "client_uri", label: "Client URL", type: "url" },
    hint: "Its domain must be verified before the client can be public",
  },
  { name: "logo_uri", label: "Logo URL", type: "url" },
  { name: "policy_uri", label: "Privacy policy URL", type: "url" },
  { name: "tos_uri", label: "Terms URL", type: "url" },
];

const ADDRESS_FIELDS: readonly Field<ClientDraft>[] = [
  {
    ...{ name: "allowed_cors_origins", label: "Origins of scripts", rows: 2, isCode: true },
    hint: "One a line: pages whose scripts may use the token endpoint.",
  },
  {
    ...{ name: "post_logout_redirect_uris", label: "Redirect URLs after sign-out" },
    ...{ rows: 2, isCode: true },
  },
];

interface FieldsProps {
  form: FormState<ClientDraft>;
  scopes: readonly WireScope[];
}

/** Shows the fields. Fields that most clients do not need are in a section that is closed at first. */
export function ClientFields({ form, scopes }: FieldsProps) {
  const chosen = form.values.scopes;
  const isOptional = ({ id }: WireScope) =>
    chosen.includes(id) && id !== "openid" && id !== "offline_access";
  const optional: Field<ClientDraft> = {
    ...{ name: "optional_scopes", label: "Optional scopes" },
    hint: "People may decline these, and allow the rest.",
    choices: scopes.filter(isOptional).map(({ id, name }): Choice => [id, name]),
  };
  const { redirect_uris: uris } = form.values;
  const uri = tryItRedirectUri();
  return (
    <>
      <Fields form={form} fields={FIELDS} />
      {!linesOf(uris).includes(uri) && (
        <p>
          <Button onClick={() => form.change({ redirect_uris: `${uris.trim()}\n${uri}`.trim() })}>
            Add the console's, to try the client here
          </Button>
        </p>
      )}
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
        <Fields form={form} fields={[...LINK_FIELDS, optional, ...ADDRESS_FIELDS]} />
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

/** The redirect URI of the try-it flow. It contains no account, so the same URI works for all accounts. */
export const tryItRedirectUri = () => location.origin + addressOf("oauth-clients/try-it");
