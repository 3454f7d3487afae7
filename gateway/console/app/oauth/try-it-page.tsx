/** Tests an OAuth client: the console acts as the client, and shows the responses. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, RestError } from "../lib/rest.ts";
import { ROOT, usePlace } from "../lib/router.ts";
import { Copyable } from "../parts/button.tsx";
import { type Choice, Form, useForm } from "../parts/form.tsx";
import { Alarm, Empty, Facts, JsonBlock } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
import { tryItRedirectUri } from "./client-fields.tsx";
import { OfClient, type OfClientProps } from "./clients-page.tsx";

export function TryItPage() {
  return <OfClient tab="try-it">{(props) => <Begin {...props} />}</OfClient>;
}

function Begin({ client, path, reload }: OfClientProps) {
  const { account, may } = useAccount();
  const form = useForm({ scopes: client.scopes });
  const { scopes } = form.values;
  const uri = tryItRedirectUri();
  const isThere = client.redirect_uris.includes(uri);
  const begin = async () => {
    const { client_id: clientId, token_endpoint_auth_method: method } = client;
    location.assign(await beginAttempt({ clientId, accountId: account.id, method }, scopes));
  };
  const add = async () => {
    await ask({ method: "PATCH", path, json: { redirect_uris: [...client.redirect_uris, uri] } });
    reload();
  };
  if (!isThere) {
    return (
      <Card title="1. Let the console be a redirect URL">
        <p>
          The authorization leads back to a redirect URL of the client. To try it here, this one
          must be among them:
        </p>
        <Copyable value={uri} />
        {may("oauth-clients.write") ? (
          <Form submit="Add it to the client" onSubmit={add}>
            <p class="quiet">You can take it away again in the settings.</p>
          </Form>
        ) : (
          <p>Ask a person whose role may change OAuth clients to add it.</p>
        )}
      </Card>
    );
  }
  return (
    <Card title="1. Ask for authorization">
      <p>You are led to the page that people see, and back here with a code.</p>
      <Form
        submit="Begin"
        onSubmit={begin}
        isDisabled={scopes.length === 0}
        form={form}
        fields={[
          {
            ...{ name: "scopes", label: "Scopes to ask for" },
            choices: client.scopes.map((scope): Choice => [scope, scope]),
          },
        ]}
      />
    </Card>
  );
}

/** The page of the redirect URI. Its query contains the response to the authorization request. */
export function TryItBackPage() {
  const [attempt] = useState(storedAttempt);
  if (!attempt) {
    return (
      <Empty title="No authorization was begun in this tab">
        Begin one at a client's page "Try it".
      </Empty>
    );
  }
  return (
    <OfClient id={attempt.clientId} tab="try-it">
      {() => <Answered attempt={attempt} />}
    </OfClient>
  );
}

function Answered({ attempt }: { attempt: Attempt }) {
  const { query } = usePlace();
  const [error, code, state] = ["error", "code", "state"].map((name) => query.get(name) ?? "");
  const [tokens, setTokens] = useState<OAuthAnswer>();
  const form = useForm({ secret: "" });
  if (state !== attempt.state) {
    return <Alarm title="The answer is of another request">Its state is not the one sent.</Alarm>;
  }
  if (error)
    return <Alarm title={`The answer is ${error}`}>{query.get("error_description")}</Alarm>;
  const { clientId, method, verifier } = attempt;
  const as = { clientId, method, secret: form.values.secret };
  const redeem = async () => {
    const fields = {
      grant_type: "authorization_code",
      code: code ?? "",
      redirect_uri: tryItRedirectUri(),
      ...(verifier && { code_verifier: verifier }),
    };
    setTokens(orRefuse(await askAsClient("token", fields, as)));
  };
  return (
    <>
      <Card title="2. Exchange the code for tokens">
        <Facts of={{ Code: <code>{code}</code> }} />
        <Form
          submit="Get tokens"
          onSubmit={redeem}
          isDisabled={tokens !== undefined}
          form={form}
          fields={[
            method !== "none" && {
              ...{ name: "secret", label: "Client secret", type: "password", required: true },
              hint: "It was shown when the client was registered. Lost? Rotate it under Overview. It stays in this tab.",
            },
          ]}
        />
        {tokens && <Json value={tokens.body} label="Tokens" />}
      </Card>
      {tokens && <Introspection token={String(tokens.body.access_token)} as={as} />}
    </>
  );
}

interface IntrospectionProps {
  token: string;
  as: { clientId: string; method: string; secret: string };
}

function Introspection({ token, as }: IntrospectionProps) {
  const [answer, setAnswer] = useState<OAuthAnswer>();
  const introspect = async () =>
    setAnswer(orRefuse(await askAsClient("introspect", { token }, as)));
  return (
    <Card title="3. Look into the access token">
      <Form submit="Introspect" onSubmit={introspect}>
        <p>The authorization server says whether the token is active, and what it opens.</p>
      </Form>
      {answer && <Json value={answer.body} label="Introspection" />}
    </Card>
  );
}

/** Throws if the authorization server answered with an error. The error contains the server's message. */
function orRefuse(answer: OAuthAnswer): OAuthAnswer {
  if (answer.status < 400) return answer;
  const { error, error_description: description = "" } = answer.body;
  const message = `${error}: ${description}`;
  throw new RestError(answer.status === 401 ? 400 : answer.status, [{ message }]);
}

function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <>
      <h3>{label}</h3>
      <JsonBlock value={value} label={label} />
    </>
  );
}

/** The data of a test that must survive the sign-in and consent pages. */
interface Attempt {
  clientId: string;
  accountId: string;
  method: string;
  state: string;
  verifier: string;
}

const STORED = "trunkline-try-it";

function storedAttempt(): Attempt | undefined {
  const text = sessionStorage.getItem(STORED);
  return text === null ? undefined : (JSON.parse(text) as Attempt);
}

/** Returns the address of the authorization request, and stores the data to check its response. */
async function beginAttempt(
  about: Pick<Attempt, "clientId" | "accountId" | "method">,
  scopes: readonly string[],
): Promise<string> {
  // Browsers provide hashing only for https and for this machine. Elsewhere the test omits PKCE, which clients with a
  // secret may do.
  const verifier = crypto.subtle ? randomText() : "";
  const attempt: Attempt = { ...about, state: randomText(), verifier };
  sessionStorage.setItem(STORED, JSON.stringify(attempt));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: attempt.clientId,
    redirect_uri: tryItRedirectUri(),
    scope: scopes.join(" "),
    state: attempt.state,
    ...(verifier && {
      code_challenge: await challengeOf(verifier),
      code_challenge_method: "S256",
    }),
  });
  return `${ROOT}/oauth2/auth?${query}`;
}

async function challengeOf(verifier: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64Url(new Uint8Array(hash));
}

const randomText = () => base64Url(crypto.getRandomValues(new Uint8Array(32)));

const base64Url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

interface OAuthAnswer {
  status: number;
  body: Record<string, unknown>;
}

/** Sends a request to an endpoint of the authorization server, authenticated as the client. */
async function askAsClient(
  endpoint: "token" | "introspect",
  fields: Record<string, string>,
  { clientId, method, secret }: { clientId: string; method: string; secret: string },
): Promise<OAuthAnswer> {
  const isBasic = method === "client_secret_basic";
  const own = isBasic ? {} : { client_id: clientId, ...(secret && { client_secret: secret }) };
  const response = await fetch(`${ROOT}/oauth2/${endpoint}`, {
    method: "POST",
    credentials: "omit",
    headers: isBasic ? { Authorization: `Basic ${btoa(`${clientId}:${secret}`)}` } : {},
    body: new URLSearchParams({ ...fields, ...own }),
  });
  return { status: response.status, body: await response.json() };
}
