/** The account's API tokens. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireToken } from "../lib/wire.ts";
import { Badge, Time, type Tone } from "../parts/bits.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { AccountTabs } from "./account-tabs.tsx";

const REFRESH_MS = 30_000;

export function TokensPage() {
  const { restPath, placeOf, may } = useAccount();
  const [page, setPage] = useState(1);
  const path = restPath(`/tokens?direction=desc&page=${page}`);
  const reading = useRest<WireToken[]>(path, { everyMs: REFRESH_MS });
  const make = may("account.write") && (
    <Link class="button small" to={placeOf("account/tokens/new")}>
      New token
    </Link>
  );
  return (
    <Page
      title="API tokens"
      lead="A token opens the REST API and Git to programs, with the permissions that you choose."
      request={{ path }}
      actions={make}
    >
      <AccountTabs current="account" />
      <Card>
        <List
          reading={reading}
          label="API tokens"
          noun="token"
          keyOf={({ id }) => id}
          onPage={setPage}
          empty={
            <Empty title="There is no token yet">
              <p>Make one for each program, so that each can be revoked by itself.</p>
            </Empty>
          }
          columns={[
            {
              name: "Name",
              cell: ({ id, name }) => <Link to={placeOf(`account/tokens/${id}`)}>{name}</Link>,
            },
            { name: "Ends with", cell: ({ last_four: lastFour }) => <code>…{lastFour}</code> },
            { name: "State", cell: ({ status }) => <TokenState status={status} /> },
            { name: "Opens", cell: (token) => openedBy(token) },
            { name: "Made", cell: ({ issued_on: at }) => <Time at={at} /> },
            { name: "Expires", cell: ({ expires_on: at }) => <Time at={at} /> },
          ]}
        />
      </Card>
    </Page>
  );
}

const TONES: Record<WireToken["status"], Tone> = {
  active: "good",
  disabled: "quiet",
  expired: "bad",
};

export function TokenState({ status }: { status: WireToken["status"] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

export const permissionsOf = ({ policies }: Pick<WireToken, "policies">): string[] =>
  policies.flatMap((policy) => policy.permission_groups.map(({ id }) => id));

function openedBy(token: WireToken): string {
  const permissions = permissionsOf(token);
  const writes = permissions.filter((one) => one.endsWith(".write"));
  if (writes.length >= 5) return "everything";
  const names = permissions.map((one) =>
    one.replace(/\.read$/, " (read)").replace(/\.write$/, " (write)"),
  );
  return names.length > 3 ? `${names.length} permissions` : names.join(", ");
}
