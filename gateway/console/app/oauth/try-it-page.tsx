/** Tries an OAuth client out: the console plays its part, and shows what it gets. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask, RestError } from "../lib/rest.ts";
import { usePlace } from "../lib/router.tsx";
import { Facts } from "../parts/bits.tsx";
import { Copyable } from "../parts/copy.tsx";
import { CheckGroup, Form, TextField } from "../parts/form.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { OfClient, type OfClientProps } from "./of-client.tsx";
import {
  type Attempt,
  askAsClient,
  beginAttempt,
  type OAuthAnswer,
  storedAttempt,
  tryItRedirectUri,
} from "./try-it.ts";

export function TryItPage({ parameters: { id = "" } }: PageParameters) {
  return (
    <OfClient id={id} tab="try-it">
      {(props) => <Begin {...props} />}
    </OfClient>
  );
}

function Begin({ client, path, reload }: OfClientProps) {
  const { account, may } = useAccount();
  const [scopes, setScopes] = useState<string[]>(client.scopes);
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
      <Form submit="Begin" onSubmit={begin} isDisabled={scopes.length === 0}>
        <CheckGroup
          label="Scopes to ask for"
          chosen={scopes}
          onChange={setScopes}
          choices={client.scopes.map((scope) => ({ value: scope, label: scope }))}
        />
      </Form>
    </Card>
  );
}

/** The redirect URL: it has the answer of the authorization request in its query. */
export function TryItBackPage() {
  const [attempt] = useState(storedAttempt);
  if (!attempt) {
    return (
      <Empty title="No authorization was begun in this tab">
        <p>Begin one at a client's page "Try it".</p>
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
  const [secret, setSecret] = useState("");
  if (state !== attempt.state) {
    return (
      <Fault
        title="The answer is of another request"
        text="Its state is not the one that was sent."
      />
    );
  }
  if (error) {
    return <Fault title={`The answer is ${error}`} text={query.get("error_description") ?? ""} />;
  }
  const { clientId, method, verifier } = attempt;
  const as = { clientId, method, secret };
  const redeem = async () => {
    const fields = {
      code: code ?? "",
      redirect_uri: tryItRedirectUri(),
      ...(verifier && { code_verifier: verifier }),
    };
    setTokens(
      orRefuse(await askAsClient("token", { grant_type: "authorization_code", ...fields }, as)),
    );
  };
  return (
    <>
      <Card title="2. Exchange the code for tokens">
        <Facts rows={[["Code", <code key="code">{code}</code>]]} />
        <Form submit="Get tokens" onSubmit={redeem} isDisabled={tokens !== undefined}>
          {method !== "none" && (
            <TextField
              label="Client secret"
              type="password"
              hint="It stays in this tab."
              value={secret}
              onChange={setSecret}
              required
            />
          )}
        </Form>
        {tokens && <Json value={tokens.body} label="Tokens" />}
      </Card>
      {tokens && <Introspection token={String(tokens.body.access_token)} as={as} />}
    </>
  );
}

function Introspection({
  token,
  as,
}: {
  token: string;
  as: { clientId: string; method: string; secret: string };
}) {
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

/** Shows a refusal of the authorization server in its own words. */
function orRefuse(answer: OAuthAnswer): OAuthAnswer {
  if (answer.status < 400) return answer;
  const { error, error_description: description = "" } = answer.body;
  throw new RestError(answer.status === 401 ? 400 : answer.status, [
    { message: `${error}: ${description}` },
  ]);
}

function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <section aria-label={label}>
      <h3>{label}</h3>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </section>
  );
}

function Fault({ title, text }: { title: string; text: string }) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{title}</strong>
      </p>
      <p>{text}</p>
    </div>
  );
}
