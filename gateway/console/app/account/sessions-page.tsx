/** Browsers in which the person is signed in. */
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { ROOT } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireSession } from "../lib/wire.ts";
import { Badge, Time } from "../parts/bits.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { AccountTabs } from "./account-tabs.tsx";

const REFRESH_MS = 30_000;

export function SessionsPage() {
  const { user } = useAccount();
  const path = "/user/sessions";
  const sessions = useRest<WireSession[]>(path, { everyMs: REFRESH_MS });
  const end = async (session: WireSession) => {
    await ask({ method: "DELETE", path: `${path}/${session.id}` });
    if (session.is_current) location.assign(`${ROOT}/login`);
    else sessions.reload();
  };
  return (
    <Page
      title="Sessions"
      lead={
        <>
          Browsers in which {user.email} is signed in. If you do not know one, end it and{" "}
          <a href={`${ROOT}/profile/password`}>change your password</a>.
        </>
      }
    >
      <AccountTabs current="account/sessions" />
      <Card>
        <List
          reading={sessions}
          label="Sessions"
          noun="session"
          keyOf={({ id }) => id}
          empty={<Empty title="There is no session" />}
          columns={[
            { name: "Signed in", cell: ({ signed_in_at: at }) => <Time at={at} /> },
            { name: "Ends", cell: ({ expires_at: at }) => <Time at={at} /> },
            {
              name: "State",
              cell: ({ is_current: isCurrent }) =>
                isCurrent ? (
                  <Badge tone="good">this browser</Badge>
                ) : (
                  <Badge tone="quiet">elsewhere</Badge>
                ),
            },
          ]}
          actions={(session) => (
            <ConfirmButton
              label="End"
              title={session.is_current ? "Sign out here?" : "End the session?"}
              text="The browser has to sign in again."
              onConfirm={() => end(session)}
            />
          )}
        />
      </Card>
    </Page>
  );
}
