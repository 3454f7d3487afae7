/** The account's OAuth clients. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireOAuthClient } from "../lib/wire.ts";
import { Badge, Time } from "../parts/bits.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";

const REFRESH_MS = 15_000;

export function ClientsPage() {
  const { restPath, placeOf, may } = useAccount();
  const [page, setPage] = useState(1);
  const path = restPath(`/oauth_clients?page=${page}&per_page=20`);
  const reading = useRest<WireOAuthClient[]>(path, { everyMs: REFRESH_MS });
  const make = may("oauth-clients.write") && (
    <Link class="button small" to={placeOf("oauth-clients/new")}>
      New client
    </Link>
  );
  return (
    <Page
      title="OAuth clients"
      lead="Applications that may ask people for permission to act for them."
      request={{ path }}
      actions={make}
    >
      <Card>
        <List
          reading={reading}
          label="OAuth clients"
          noun="client"
          keyOf={({ client_id: id }) => id}
          onPage={setPage}
          empty={
            <Empty title="There is no OAuth client yet">
              <p>
                Register an application, and try its authorization out here before you write any
                code.
              </p>
              <p>{make}</p>
            </Empty>
          }
          columns={[
            {
              name: "Name",
              cell: ({ client_id: id, client_name: name }) => (
                <Link to={placeOf(`oauth-clients/${id}`)}>{name}</Link>
              ),
            },
            { name: "Client ID", cell: ({ client_id: id }) => <code>{id}</code> },
            { name: "Visibility", cell: (client) => <Visibility client={client} /> },
            { name: "Domain", cell: (client) => <DomainState client={client} /> },
            { name: "Changed", cell: ({ updated_at: at }) => <Time at={at} /> },
          ]}
        />
      </Card>
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
