/** The page of the account's members: their roles, and invitations. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, post, resultOf } from "../lib/rest.ts";
import { addressOf } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { InvitedMember, WireMember, WireRole } from "../lib/wire.ts";
import { Button, SecretOnce } from "../parts/button.tsx";
import { ConfirmButton, Dialog } from "../parts/dialog.tsx";
import { type Field, Form, useForm } from "../parts/form.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Badge, Time } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";
import { accountTabs } from "./tokens-page.tsx";

export function MembersPage() {
  const { restPath, may, user } = useAccount();
  const members = useList<WireMember>(restPath("/members"), {
    everyMs: 30_000,
    query: { per_page: "50" },
  });
  const roles = useRest<WireRole[]>(restPath("/roles"));
  const { reload, hasAnswered } = members.reading;
  const canWrite = may("account.write");
  return (
    <Page
      title="Members"
      lead="People who may use this account, each with the permissions of their roles."
      request={members}
      tabs={accountTabs("account/members")}
    >
      <ListCard
        list={members}
        label="Members"
        noun="member"
        empty={["Nobody is a member"]}
        columns={{
          Email: ({ email }) => email,
          Roles: ({ roles: held }) => held.map(({ name }) => name).join(", "),
          State: (member) => <MemberState member={member} />,
        }}
        actions={(member) => (
          <>
            {canWrite && <ChangeRoles {...{ member, reload }} roles={roles.value ?? []} />}
            {member.id === user.id && <Leave />}
            {canWrite && member.id !== user.id && <Remove {...{ member, reload }} />}
          </>
        )}
      />
      {canWrite && hasAnswered && roles.hasAnswered && (
        <Invite roles={roles.value ?? []} reload={reload} />
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

const rolesField = (roles: readonly WireRole[]): Field<{ roles: string[] }> => ({
  ...{ name: "roles", label: "Roles" },
  choices: roles.map(({ id, name, description }) => [id, name, description]),
});

interface MemberProps {
  member: WireMember;
  reload: () => void;
}

function ChangeRoles({ member, roles, reload }: MemberProps & { roles: readonly WireRole[] }) {
  const [isOpen, setOpen] = useState(false);
  const title = `Roles of ${member.email}`;
  const close = () => setOpen(false);
  return (
    <>
      <Button label={title} onClick={() => setOpen(true)}>
        Roles
      </Button>
      {isOpen && (
        <Dialog title={title} onClose={close}>
          <RolesForm {...{ member, roles, reload, close }} />
        </Dialog>
      )}
    </>
  );
}

interface RolesFormProps extends MemberProps {
  roles: readonly WireRole[];
  close: () => void;
}

/** Exists only while its dialog is open, so it begins with the roles that the table shows at that time. */
function RolesForm({ member, roles, reload, close }: RolesFormProps) {
  const { restPath } = useAccount();
  const form = useForm({ roles: member.roles.map(({ id }) => id) });
  const save = async () => {
    await ask({ method: "PUT", path: restPath(`/members/${member.id}`), json: form.values });
    close();
    reload();
  };
  return (
    <Form
      {...{ submit: "Save", onSubmit: save, onCancel: close }}
      form={form}
      fields={[rolesField(roles)]}
    />
  );
}

function Remove({ member: { id, email, status }, reload }: MemberProps) {
  const { restPath } = useAccount();
  const isInvited = status === "pending";
  return (
    <ConfirmButton
      label={isInvited ? "Take back" : "Remove"}
      title={isInvited ? "Take the invitation back?" : `Remove ${email}?`}
      text={
        isInvited
          ? `The link that was sent to ${email} opens nothing any more.`
          : "What they allowed OAuth clients to do here ends at once."
      }
      request={{ method: "DELETE", path: restPath(`/members/${id}`) }}
      done={reload}
    />
  );
}

/** Every member can leave, so every page that all members can read may show this button. */
export function Leave() {
  const { account } = useAccount();
  return (
    <ConfirmButton
      label="Leave"
      title={`Leave ${account.name}?`}
      text="You can do nothing in this account any more. What you allowed OAuth clients to do here ends at once."
      request={{ method: "DELETE", path: `/user/accounts/${account.id}` }}
      done={() => location.assign(addressOf(""))}
    />
  );
}

function Invite({ roles, reload }: { roles: readonly WireRole[]; reload: () => void }) {
  const { restPath } = useAccount();
  const form = useForm({ email: "", roles: ["Member"] });
  const [invited, setInvited] = useState<InvitedMember>();
  const invite = async () => {
    setInvited(await resultOf<InvitedMember>(post(restPath("/members"), form.values)));
    form.change({ email: "" });
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
      <Form
        submit="Invite"
        onSubmit={invite}
        form={form}
        fields={[
          { name: "email", label: "Email", type: "email", required: true },
          rolesField(roles) as Field<typeof form.values>,
        ]}
      />
    </Card>
  );
}
