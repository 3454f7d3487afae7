/** The people of the account, their roles, and invitations. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { useRest } from "../lib/use-rest.ts";
import type { InvitedMember, WireMember, WireRole } from "../lib/wire.ts";
import { Badge, Time } from "../parts/bits.tsx";
import { SecretOnce } from "../parts/copy.tsx";
import { ConfirmButton, Dialog } from "../parts/dialog.tsx";
import { CheckGroup, Form, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { AccountTabs } from "./account-tabs.tsx";

const REFRESH_MS = 30_000;

export function MembersPage() {
  const { restPath, may } = useAccount();
  const path = restPath("/members?per_page=50");
  const members = useRest<WireMember[]>(path, { everyMs: REFRESH_MS });
  const roles = useRest<WireRole[]>(restPath("/roles"));
  const canWrite = may("account.write");
  return (
    <Page
      title="Members"
      lead="People who may use this account, each with the permissions of their roles."
      request={{ path }}
    >
      <AccountTabs current="account/members" />
      <Card>
        <List
          reading={members}
          label="Members"
          noun="member"
          keyOf={({ id }) => id}
          empty={<Empty title="Nobody is a member" />}
          columns={[
            { name: "Email", cell: ({ email }) => email },
            { name: "Roles", cell: ({ roles: held }) => held.map(({ name }) => name).join(", ") },
            { name: "State", cell: (member) => <MemberState member={member} /> },
          ]}
          actions={(member) =>
            canWrite && (
              <>
                <ChangeRoles member={member} roles={roles.value ?? []} reload={members.reload} />
                <Remove member={member} reload={members.reload} />
              </>
            )
          }
        />
      </Card>
      {canWrite && members.hasAnswered && roles.hasAnswered && (
        <Invite roles={roles.value ?? []} reload={members.reload} />
      )}
    </Page>
  );
}

function MemberState({ member: { status, expires_at: at } }: { member: WireMember }) {
  if (status === "accepted") return <Badge tone="good">member</Badge>;
  return (
    <>
      <Badge tone="busy">invited</Badge>{" "}
      <span class="quiet">
        expires <Time at={at} />
      </span>
    </>
  );
}

const choicesOf = (roles: readonly WireRole[]) =>
  roles.map(({ id, name, description }) => ({ value: id, label: name, hint: description }));

interface ChangeProps {
  member: WireMember;
  reload: () => void;
}

function ChangeRoles({ member, roles, reload }: ChangeProps & { roles: readonly WireRole[] }) {
  const { restPath } = useAccount();
  const [chosen, setChosen] = useState<string[]>();
  const save = async () => {
    await ask({ method: "PUT", path: restPath(`/members/${member.id}`), json: { roles: chosen } });
    setChosen(undefined);
    reload();
  };
  return (
    <>
      <button
        type="button"
        class="small second"
        aria-label={`Roles of ${member.email}`}
        onClick={() => setChosen(member.roles.map(({ id }) => id))}
      >
        Roles
      </button>
      {chosen && (
        <Dialog title={`Roles of ${member.email}`} onClose={() => setChosen(undefined)}>
          <Form submit="Save" onSubmit={save} onCancel={() => setChosen(undefined)}>
            <CheckGroup
              label="Roles"
              pointer="/roles"
              choices={choicesOf(roles)}
              chosen={chosen}
              onChange={setChosen}
            />
          </Form>
        </Dialog>
      )}
    </>
  );
}

function Remove({ member, reload }: ChangeProps) {
  const { restPath } = useAccount();
  const isInvited = member.status === "pending";
  const remove = async () => {
    await ask({ method: "DELETE", path: restPath(`/members/${member.id}`) });
    reload();
  };
  return (
    <ConfirmButton
      label={isInvited ? "Take back" : "Remove"}
      title={isInvited ? "Take the invitation back?" : `Remove ${member.email}?`}
      text={
        isInvited
          ? `The link that was sent to ${member.email} opens nothing any more.`
          : "What they allowed OAuth clients to do here ends at once."
      }
      onConfirm={remove}
    />
  );
}

function Invite({ roles, reload }: { roles: readonly WireRole[]; reload: () => void }) {
  const { restPath } = useAccount();
  const [email, setEmail] = useState("");
  const [chosen, setChosen] = useState<string[]>(["Member"]);
  const [invited, setInvited] = useState<InvitedMember>();
  const invite = async () => {
    const json = { email, roles: chosen };
    const asked = { method: "POST" as const, path: restPath("/members"), json };
    setInvited((await ask<InvitedMember>(asked)).result);
    setEmail("");
    reload();
  };
  return (
    <Card title="Invite a person">
      {invited && (
        <>
          <SecretOnce label={`Invitation of ${invited.email}`} value={invited.invitation_url} />
          <p>Send it to them yourself: the platform sends no mail.</p>
        </>
      )}
      <Form submit="Invite" onSubmit={invite}>
        <TextField
          label="Email"
          type="email"
          pointer="/email"
          value={email}
          onChange={setEmail}
          required
        />
        <CheckGroup
          label="Roles"
          pointer="/roles"
          choices={choicesOf(roles)}
          chosen={chosen}
          onChange={setChosen}
        />
      </Form>
    </Card>
  );
}
