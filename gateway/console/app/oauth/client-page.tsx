/** One OAuth client: what it is, its secrets, and its end. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { navigate, ROOT } from "../lib/router.tsx";
import { Facts, Time } from "../parts/bits.tsx";
import { Copyable, SecretOnce } from "../parts/copy.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { DomainState, Visibility } from "./clients-page.tsx";
import { OfClient, type OfClientProps } from "./of-client.tsx";

export function ClientPage({ parameters: { id = "" } }: PageParameters) {
  return (
    <OfClient id={id} tab="">
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
  const server = `${location.origin}${ROOT}`;
  return (
    <Card title="Client">
      <Facts
        rows={[
          ["Client ID", <Copyable key="id" value={client.client_id} />],
          ["Issuer", <Copyable key="issuer" value={server} />],
          ["Visibility", <Visibility key="visibility" client={client} />],
          ["Domain", <DomainState key="domain" client={client} />],
          ["Grant types", client.grant_types.join(", ")],
          ["Token authentication", client.token_endpoint_auth_method],
          ["Redirect URLs", <Lines key="uris" items={client.redirect_uris} />],
          ["Scopes", client.scopes.join(", ")],
          ["Made", <Time key="made" at={client.created_at} />],
        ]}
      />
    </Card>
  );
}

function Lines({ items }: { items: readonly string[] }) {
  return (
    <ul class="lines">
      {items.map((item) => (
        <li key={item}>
          <code>{item}</code>
        </li>
      ))}
    </ul>
  );
}

function Secrets({ client, path, reload }: OfClientProps) {
  const { may } = useAccount();
  const [secret, setSecret] = useState<string>();
  const isPublic = client.token_endpoint_auth_method === "none";
  const rotate = async () => {
    const asked = { method: "POST" as const, path: `${path}/rotate_secret` };
    setSecret((await ask<{ client_secret: string }>(asked)).result.client_secret);
    reload();
  };
  const removeOld = async () => {
    await ask({ method: "DELETE", path: `${path}/rotate_secret` });
    reload();
  };
  if (isPublic) {
    return (
      <Card title="Secrets">
        <Empty title="It has no secret">
          <p>It proves itself with PKCE.</p>
        </Empty>
      </Card>
    );
  }
  return (
    <Card title="Secrets">
      {secret && <SecretOnce label="Client secret" value={secret} />}
      <Table
        label="Secrets"
        rows={client.secrets.map((one, index) => ({ ...one, index }))}
        keyOf={({ last_four: lastFour, created_at: at }) => `${lastFour} ${at}`}
        columns={[
          { name: "Ends with", cell: ({ last_four: lastFour }) => <code>…{lastFour}</code> },
          { name: "Age", cell: ({ index }) => ageOf(index, client.secrets.length) },
          { name: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
          { name: "Last used", cell: ({ last_used_at: at }) => <Time at={at} /> },
        ]}
      />
      <p class="quiet">
        {client.has_rotated_secret
          ? "Both secrets are valid. Delete the old one when its last use is from before your programs had the new one."
          : "Rotating makes a second secret. Both are valid until you delete the old one."}
      </p>
      {may("oauth-clients.write") && (
        <div class="actions">
          {client.has_rotated_secret ? (
            <ConfirmButton
              label="Delete the old secret"
              title="Delete the old secret?"
              text={`Programs that use the secret …${client.secrets[0]?.last_four} are refused from now on.`}
              onConfirm={removeOld}
            />
          ) : (
            <ConfirmButton
              label="Rotate"
              title="Make a second secret?"
              text="The present secret stays valid until you delete it."
              onConfirm={rotate}
            />
          )}
        </div>
      )}
    </Card>
  );
}

function ageOf(index: number, count: number): string {
  if (count === 1) return "the only one";
  return index === count - 1 ? "new" : "old";
}

function Deletion({ client, path }: OfClientProps) {
  const { placeOf, may } = useAccount();
  if (!may("oauth-clients.write")) return null;
  const remove = async () => {
    await ask({ method: "DELETE", path });
    navigate(placeOf("oauth-clients"));
  };
  return (
    <Card title="Delete">
      <p class="quiet">Whatever people have allowed it ends at once, and it does not come back.</p>
      <ConfirmButton
        label="Delete the client"
        title={`Delete ${client.client_name}?`}
        text="Its tokens open nothing any more, and nobody can sign in with it. It cannot be undone."
        typed={client.client_name}
        onConfirm={remove}
      />
    </Card>
  );
}
