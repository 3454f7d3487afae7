/**
 * The list of the account's OAuth clients, and the page of one client: its properties, its secrets, and its deletion.
 */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ROOT, useParameters } from "../lib/router.ts";
import type { WireOAuthClient } from "../lib/wire.ts";
import { Copyable, SecretOnce } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, Table, useList } from "../parts/list.tsx";
import { Badge, Empty, Facts, Lines, Time } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";

export function ClientsPage() {
  const { restPath, may } = useAccount();
  const clients = useList<WireOAuthClient>(restPath("/oauth_clients"), { everyMs: 15_000 });
  const make = may("oauth-clients.write") && (
    <ButtonLink isMain to="oauth-clients/new">
      New client
    </ButtonLink>
  );
  return (
    <Page
      title="OAuth clients"
      lead="Applications that may ask people for permission to act for them."
      request={clients}
      actions={make}
    >
      <ListCard
        list={clients}
        label="OAuth clients"
        noun="client"
        keyOf={({ client_id: id }) => id}
        empty={[
          "There is no OAuth client yet",
          <>
            <p>
              Register an application, and try its authorization out here before you write any code.
            </p>
            <p>{make}</p>
          </>,
        ]}
        columns={{
          Name: ({ client_id: id, client_name: name }) => (
            <Link to={`oauth-clients/${id}`}>{name}</Link>
          ),
          "Client ID": ({ client_id: id }) => <code>{id}</code>,
          Visibility: (client) => <Visibility client={client} />,
          Domain: (client) => <DomainState client={client} />,
          Changed: ({ updated_at: at }) => <Time at={at} />,
        }}
      />
    </Page>
  );
}

export function Visibility({ client: { visibility } }: { client: WireOAuthClient }) {
  return <Badge tone={visibility === "public" ? "good" : "quiet"}>{visibility}</Badge>;
}

export function DomainState({ client }: { client: WireOAuthClient }) {
  const verification = client.client_uri_verification;
  if (!verification) return <span class="quiet">none</span>;
  const { status, missing_since: missingSince } = verification;
  if (missingSince) return <Badge tone="bad">record is gone</Badge>;
  if (status === "verified") return <Badge tone="good">verified</Badge>;
  if (status === "failed") return <Badge tone="bad">failed</Badge>;
  return <Badge tone="busy">waiting for the record</Badge>;
}

export function ClientPage() {
  return (
    <OfClient tab="">
      {(props) => (
        <>
          <Overview {...props} />
          <Secrets {...props} />
          <Deletion {...props} />
        </>
      )}
    </OfClient>
  );
}

function Overview({ client }: OfClientProps) {
  return (
    <Card title="Client">
      <Facts
        of={{
          "Client ID": <Copyable value={client.client_id} />,
          Issuer: <Copyable value={`${location.origin}${ROOT}`} />,
          Visibility: <Visibility client={client} />,
          Domain: <DomainState client={client} />,
          "Grant types": client.grant_types.join(", "),
          "Token authentication": client.token_endpoint_auth_method,
          "Redirect URLs": <Lines of={client.redirect_uris} />,
          Scopes: client.scopes.join(", "),
          Made: <Time at={client.created_at} />,
        }}
      />
    </Card>
  );
}

function Secrets({ client, path, reload }: OfClientProps) {
  const { may } = useAccount();
  const [secret, setSecret] = useState<string>();
  const { secrets, has_rotated_secret: isRotated } = client;
  if (client.token_endpoint_auth_method === "none") {
    return (
      <Card title="Secrets">
        <Empty title="It has no secret">It proves itself with PKCE.</Empty>
      </Card>
    );
  }
  return (
    <Card title="Secrets">
      {secret && <SecretOnce label="Client secret" value={secret} />}
      <Table
        label="Secrets"
        rows={secrets.map((one, index) => ({ ...one, index }))}
        columns={{
          "Ends with": ({ last_four: lastFour }) => <code>…{lastFour}</code>,
          Age: ({ index }) => ageOf(index, secrets.length),
          Made: ({ created_at: at }) => <Time at={at} />,
          "Last used": ({ last_used_at: at }) => <Time at={at} />,
        }}
      />
      <p class="quiet">
        {isRotated
          ? "Both secrets are valid. Delete the old one when its last use is from before your programs had the new one."
          : "Rotating makes a second secret. Both are valid until you delete the old one."}
      </p>
      {may("oauth-clients.write") && (
        <SecretButtons {...{ secrets, path: `${path}/rotate_secret`, reload, setSecret }} />
      )}
    </Card>
  );
}

interface SecretButtonsProps extends Pick<OfClientProps, "path" | "reload"> {
  secrets: WireOAuthClient["secrets"];
  setSecret: (secret: string) => void;
}

function SecretButtons({ secrets, path, reload, setSecret }: SecretButtonsProps) {
  const [old, newer] = secrets;
  const show = ({ client_secret: made }: { client_secret: string }) => {
    setSecret(made);
    reload();
  };
  const request = { method: "POST", path } as const;
  if (!newer) {
    return (
      <div class="actions">
        <ConfirmButton
          label="Rotate"
          title="Make a second secret?"
          text="The present secret stays valid until you delete it."
          request={request}
          done={show}
        />
      </div>
    );
  }
  return (
    <div class="actions">
      <ConfirmButton
        label="Delete the old secret"
        title="Delete the old secret?"
        text={`Programs that use the secret …${old?.last_four} are refused from now on.`}
        request={{ method: "DELETE", path }}
        done={reload}
      />
      {newer.last_used_at === undefined && (
        <ConfirmButton
          label="Replace the new secret"
          title="Replace the new secret?"
          text={`No program has used the secret …${newer.last_four}. It ends, and the old one stays.`}
          request={request}
          done={show}
        />
      )}
    </div>
  );
}

function ageOf(index: number, count: number): string {
  if (count === 1) return "the only one";
  return index === count - 1 ? "new" : "old";
}

function Deletion({ client: { client_name: name }, path }: OfClientProps) {
  const { go, may } = useAccount();
  if (!may("oauth-clients.write")) return null;
  return (
    <Card title="Delete">
      <p class="quiet">Whatever people have allowed it ends at once, and it does not come back.</p>
      <ConfirmButton
        label="Delete the client"
        title={`Delete ${name}?`}
        text="Its tokens open nothing any more, and nobody can sign in with it. It cannot be undone."
        typed={name}
        request={{ method: "DELETE", path }}
        done={() => go("oauth-clients")}
      />
    </Card>
  );
}

/**
 * Interval between two reads. At first the platform checks a domain every few seconds, so its new state appears soon.
 */
const REFRESH_MS = 5_000;

export interface OfClientProps {
  client: WireOAuthClient;
  /** Below /v4. */
  path: string;
  reload: () => void;
}

const TABS = [
  ["", "Overview"],
  ["settings", "Settings"],
  ["domain", "Domain and visibility"],
  ["try-it", "Try it"],
  ["people", "People and changes"],
] as const;

interface FrameProps {
  /** The client, if the page's path does not have its id. */
  id?: string;
  tab: (typeof TABS)[number][0];
  children: (props: OfClientProps) => ComponentChildren;
}

export function OfClient({ id: given, tab, children }: FrameProps) {
  const { restPath } = useAccount();
  const { id = given ?? "" } = useParameters();
  const path = restPath(`/oauth_clients/${encodeURIComponent(id)}`);
  const below = (one: string) => `oauth-clients/${id}${one && `/${one}`}`;
  const pages = TABS.map(([one, name]) => [below(one), name] as const);
  return (
    <RestPage<WireOAuthClient>
      path={path}
      everyMs={REFRESH_MS}
      title={(client) => client?.client_name ?? "OAuth client"}
      above={["OAuth clients", "oauth-clients"]}
      tabs={{ label: "Pages of the client", pages, current: below(tab) }}
    >
      {(client, reload) => children({ client, path, reload })}
    </RestPage>
  );
}
