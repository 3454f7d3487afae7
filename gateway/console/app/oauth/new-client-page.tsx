/** The forms to register an OAuth client, whose secret is shown only one time, and to change its registration. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { post, resultOf } from "../lib/rest.ts";
import { useRest } from "../lib/use-rest.ts";
import type { CreatedOAuthClient, WireOAuthClient, WireScope } from "../lib/wire.ts";
import { Copyable, SecretOnce } from "../parts/button.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { Facts } from "../parts/note.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import {
  ClientFields,
  changesOf,
  checkDraft,
  draftOf,
  EMPTY_DRAFT,
  requestOf,
} from "./client-fields.tsx";
import { OfClient, type OfClientProps } from "./clients-page.tsx";

export function NewClientPage() {
  const { restPath } = useAccount();
  const scopes = useRest<WireScope[]>("/oauth/scopes");
  const form = useForm(EMPTY_DRAFT);
  const [made, setMade] = useState<CreatedOAuthClient>();
  const request = post(restPath("/oauth_clients"), requestOf(form.values));
  const create = async () => {
    checkDraft(form.values);
    setMade(await resultOf<CreatedOAuthClient>(request));
    scrollTo(0, 0);
  };
  return (
    <Page
      title="New OAuth client"
      above={["OAuth clients", "oauth-clients"]}
      lead="It is private at first: only members of this account can allow it."
      request={request}
    >
      {made ? (
        <Registered client={made} />
      ) : (
        <Card>
          <Read reading={scopes}>
            {(all) => (
              <Form submit="Register the client" onSubmit={create}>
                <ClientFields form={form} scopes={all} />
              </Form>
            )}
          </Read>
        </Card>
      )}
    </Page>
  );
}

function Registered({ client }: { client: CreatedOAuthClient }) {
  const { client_id: id, client_secret: secret, client_name: name } = client;
  return (
    <Card title={`${name} is registered`}>
      {secret && <SecretOnce label="Client secret" value={secret} />}
      <Facts of={{ "Client ID": <Copyable value={id} /> }} />
      <p class="actions">
        <ButtonLink isMain to={`oauth-clients/${id}/try-it`}>
          Try it
        </ButtonLink>
        <ButtonLink to={`oauth-clients/${id}`}>Go to the client</ButtonLink>
      </p>
    </Card>
  );
}

export function SettingsPage() {
  return <OfClient tab="settings">{(props) => <Settings {...props} />}</OfClient>;
}

function Settings({ client, path, reload }: OfClientProps) {
  const scopes = useRest<WireScope[]>("/oauth/scopes");
  const [loaded, setLoaded] = useState(() => draftOf(client));
  const form = useForm(loaded);
  const { values } = form;
  const save = async () => {
    checkDraft(values);
    const json = changesOf(values, loaded);
    const saved = draftOf(await resultOf<WireOAuthClient>({ method: "PATCH", path, json }));
    setLoaded(saved);
    form.change(saved);
    reload();
    return "Saved.";
  };
  return (
    <Card title="Settings">
      <Read reading={scopes}>
        {(all) => (
          <Form submit="Save" onSubmit={save}>
            <ClientFields form={form} scopes={all} />
          </Form>
        )}
      </Read>
    </Card>
  );
}
