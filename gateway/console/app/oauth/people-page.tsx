/** Who has allowed an OAuth client, and who has changed it. */
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ROOT } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAllowance, WireOAuthChange } from "../lib/wire.ts";
import { Time } from "../parts/bits.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { OfClient } from "./of-client.tsx";

const REFRESH_MS = 15_000;

export function PeoplePage({ parameters: { id = "" } }: PageParameters) {
  return (
    <OfClient id={id} tab="people">
      {({ path }) => (
        <>
          <Allowances path={`${path}/allowances`} />
          <Changes path={`${path}/audit_log`} />
        </>
      )}
    </OfClient>
  );
}

function Allowances({ path }: { path: string }) {
  const reading = useRest<WireAllowance[]>(path, { everyMs: REFRESH_MS });
  return (
    <Card title="Who has allowed it">
      <List
        reading={reading}
        label="People who have allowed it"
        noun="person of this account"
        keyOf={({ user }) => user.id}
        empty={
          <Empty title="No member of this account has allowed it">
            <p>People take back what they allowed on their own page of authorized clients.</p>
          </Empty>
        }
        columns={[
          { name: "Email", cell: ({ user }) => user.email ?? user.id },
          { name: "Allows", cell: ({ scopes }) => scopes.join(", ") || "nothing" },
          {
            name: "Declined",
            cell: ({ declined_scopes: declined }) => declined.join(", ") || "nothing",
          },
          {
            name: "This account",
            cell: (one) => (one.is_for_this_account ? "chosen" : "not chosen"),
          },
        ]}
      />
      <p class="quiet">
        Your own are at <a href={`${ROOT}/profile/clients`}>authorized clients</a>.
      </p>
    </Card>
  );
}

function Changes({ path }: { path: string }) {
  const reading = useRest<WireOAuthChange[]>(path);
  return (
    <Card title="Changes">
      <List
        reading={reading}
        label="Changes"
        noun="change"
        keyOf={({ number }) => String(number)}
        empty={<Empty title="Nothing has changed" />}
        columns={[
          { name: "When", cell: ({ at }) => <Time at={at} /> },
          { name: "What", cell: ({ action }) => action.replaceAll("_", " ") },
          { name: "Fields", cell: ({ changes }) => changes.map(({ field }) => field).join(", ") },
          { name: "By", cell: ({ by }) => <Changer by={by} /> },
        ]}
      />
    </Card>
  );
}

function Changer({ by }: Pick<WireOAuthChange, "by">) {
  const { user } = useAccount();
  if (by.type === "system") return <>the platform</>;
  if (by.id === user.id) return <>you</>;
  return (
    <>
      {by.type === "user" ? "user" : "token"} <code>{by.id}</code>
    </>
  );
}
