/** Lists the people who have authorized an OAuth client, and the people who have changed it. */
import { useAccount } from "../lib/account.tsx";
import { ROOT } from "../lib/router.ts";
import type { WireAllowance, WireOAuthChange } from "../lib/wire.ts";
import { ListCard, useList } from "../parts/list.tsx";
import { Time } from "../parts/note.tsx";
import { OfClient } from "./clients-page.tsx";

export function PeoplePage() {
  return (
    <OfClient tab="people">
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
  const list = useList<WireAllowance>(path, { everyMs: 15_000 });
  return (
    <ListCard
      list={list}
      title="Who has allowed it"
      label="People who have allowed it"
      noun="person of this account"
      keyOf={({ user }) => user.id}
      empty={[
        "No member of this account has allowed it",
        "People take back what they allowed on their own page of authorized clients.",
      ]}
      columns={{
        Email: ({ user }) => user.email ?? user.id,
        Allows: ({ scopes }) => scopes.join(", ") || "nothing",
        Declined: ({ declined_scopes: declined }) => declined.join(", ") || "nothing",
        "This account": (one) => (one.is_for_this_account ? "chosen" : "not chosen"),
      }}
    >
      <p class="quiet">
        Your own are at <a href={`${ROOT}/profile/clients`}>authorized clients</a>.
      </p>
    </ListCard>
  );
}

function Changes({ path }: { path: string }) {
  const { user } = useAccount();
  const changer = ({ by }: WireOAuthChange) => {
    if (by.type === "system") return "the platform";
    if (by.id === user.id) return "you";
    return (
      <>
        {by.type === "user" ? "user" : "token"} <code>{by.id}</code>
      </>
    );
  };
  return (
    <ListCard
      list={useList<WireOAuthChange>(path)}
      title="Changes"
      label="Changes"
      noun="change"
      keyOf={({ number }) => String(number)}
      empty={["Nothing has changed"]}
      columns={{
        When: ({ at }) => <Time at={at} />,
        What: ({ action }) => action.replaceAll("_", " "),
        Fields: ({ changes }) => changes.map(({ field }) => field).join(", "),
        By: changer,
      }}
    />
  );
}
