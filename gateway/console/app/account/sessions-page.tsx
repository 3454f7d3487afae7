/** Lists the browsers in which the person is signed in, and shows the person's identity on the platform. */
import { useAccount } from "../lib/account.tsx";
import { ROOT } from "../lib/router.ts";
import type { WireSession } from "../lib/wire.ts";
import { Copyable } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Badge, Facts, Time } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";
import { Leave } from "./members-page.tsx";
import { accountTabs } from "./tokens-page.tsx";

const PATH = "/user/sessions";

export function SessionsPage() {
  const { user, account } = useAccount();
  const sessions = useList<WireSession>(PATH, { everyMs: 30_000 });
  const ended = (isCurrent: boolean) =>
    isCurrent ? location.assign(`${ROOT}/login`) : sessions.reading.reload();
  return (
    <Page
      title="Sessions"
      lead={
        <>
          Browsers in which {user.email} is signed in. If you do not know one, end it and{" "}
          <a href={`${ROOT}/profile/password`}>change your password</a>.
        </>
      }
      tabs={accountTabs("account/sessions")}
    >
      <ListCard
        list={sessions}
        label="Sessions"
        noun="session"
        empty={["There is no session"]}
        columns={{
          "Signed in": ({ signed_in_at: at }) => <Time at={at} />,
          Ends: ({ expires_at: at }) => <Time at={at} />,
          State: ({ is_current: isCurrent }) => (
            <Badge tone={isCurrent ? "good" : "quiet"}>
              {isCurrent ? "this browser" : "elsewhere"}
            </Badge>
          ),
        }}
        actions={({ id, is_current: isCurrent }) => (
          <ConfirmButton
            label="End"
            title={isCurrent ? "Sign out here?" : "End the session?"}
            text="The browser has to sign in again."
            request={{ method: "DELETE", path: `${PATH}/${id}` }}
            done={() => ended(isCurrent)}
          />
        )}
      />
      {sessions.reading.hasAnswered && (
        <Card title="You">
          <Facts of={{ Email: user.email, "User id": <Copyable value={user.id} /> }} />
          <p class="quiet">
            An administrator of the installation needs both to make you an administrator too.
          </p>
          <p class="quiet">
            You are a member of {account.name}. <Leave />
          </p>
        </Card>
      )}
    </Page>
  );
}
