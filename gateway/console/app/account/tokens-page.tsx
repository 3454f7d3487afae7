/**
 * The account's API tokens: their list, a form for a new token with its permissions and expiry, and the secret of the
 * new token.
 */

import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { post, refuse, resultOf } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { CreatedToken, PermissionGroup, WireToken } from "../lib/wire.ts";
import { SecretOnce } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Facts, State, Time, type Tone } from "../parts/note.tsx";
import { Card, Page, Read, RestPage } from "../parts/page.tsx";
import { PermissionPicker } from "./permission-picker.tsx";

const TABS = [
  ["account", "API tokens"],
  ["account/members", "Members"],
  ["account/sessions", "Sessions"],
] as const;

/** The pages of the account area. */
export const accountTabs = (current: (typeof TABS)[number][0]) => ({
  ...{ label: "Account", pages: TABS, current },
});

const TONES: Readonly<Record<WireToken["status"], Tone>> = {
  ...{ active: "good", disabled: "quiet", expired: "bad" },
};

export function TokensPage() {
  const { restPath, may } = useAccount();
  const tokens = useList<WireToken>(restPath("/tokens"), {
    everyMs: 30_000,
    query: { direction: "desc" },
  });
  return (
    <Page
      title="API tokens"
      lead="A token opens the REST API and Git to programs, with the permissions that you choose."
      request={tokens}
      actions={
        may("account.write") && (
          <ButtonLink isMain to="account/tokens/new">
            New token
          </ButtonLink>
        )
      }
      tabs={accountTabs("account")}
    >
      <ListCard
        list={tokens}
        label="API tokens"
        noun="token"
        empty={[
          "There is no token yet",
          "Make one for each program, so that each can be revoked by itself.",
        ]}
        columns={{
          Name: ({ id, name }) => <Link to={`account/tokens/${id}`}>{name}</Link>,
          "Ends with": ({ last_four: lastFour }) => <code>…{lastFour}</code>,
          State: ({ status }) => <State of={status} tones={TONES} />,
          Permissions: permissionsIn,
          Made: ({ issued_on: at }) => <Time at={at} />,
          "Last used": ({ last_used_on: at }) => <Time at={at} />,
          Expires: ({ expires_on: at }) => <Time at={at} />,
        }}
        actions={(token) =>
          may("account.write") && <Revoke token={token} done={tokens.reading.reload} />
        }
      />
    </Page>
  );
}

function Revoke({ token: { id, name }, done }: { token: WireToken; done: () => void }) {
  return (
    <ConfirmButton
      label="Revoke"
      title={`Revoke ${name}?`}
      text="Programs that use the token are refused from now on. It cannot be undone."
      request={{ method: "DELETE", path: useAccount().restPath(`/tokens/${id}`) }}
      done={done}
    />
  );
}

const permissionsOf = ({ policies }: Pick<WireToken, "policies">): string[] =>
  policies.flatMap((policy) => policy.permission_groups.map(({ id }) => id));

function permissionsIn(token: WireToken): string {
  const permissions = permissionsOf(token);
  const writes = permissions.filter((one) => one.endsWith(".write"));
  if (writes.length >= 5) return "everything";
  const names = permissions.map((one) => one.replace(/\.(read|write)$/, " ($1)"));
  return names.length > 3 ? `${names.length} permissions` : names.join(", ");
}

const DAY_MS = 86_400_000;
const EXPIRIES = [
  ["", "Never"],
  ["1", "In 1 day"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In 1 year"],
] as const;

/** Reads the permissions that the account may give to tokens. */
const useGroups = () =>
  useRest<PermissionGroup[]>(useAccount().restPath("/tokens/permission_groups?per_page=50"));

export function NewTokenPage() {
  const { restPath } = useAccount();
  const groups = useGroups();
  const form = useForm({ name: "", days: "90" });
  const [chosen, setChosen] = useState<string[]>([]);
  const [made, setMade] = useState<CreatedToken>();
  const { name, days } = form.values;
  const endsAt = new Date(Date.now() + Number(days) * DAY_MS).toISOString();
  const expiry = days === "" ? {} : { expires_on: endsAt };
  const request = post(restPath("/tokens"), { name, policies: [policyOf(chosen)], ...expiry });
  const create = async () => {
    checkChosen(chosen);
    setMade(await resultOf<CreatedToken>(request));
  };
  return (
    <Page
      title="New token"
      above={["API tokens", "account"]}
      lead="Give a token no more than its program needs."
      request={request}
    >
      <Card>
        {made ? (
          <>
            <SecretOnce label="Token" value={made.value} />
            <p>
              <Link to={`account/tokens/${made.id}`}>Go to the token {made.name}</Link>
            </p>
          </>
        ) : (
          <Read reading={groups}>
            {(all) => (
              <Form
                submit="Make the token"
                onSubmit={create}
                form={form}
                fields={[
                  {
                    ...{ name: "name", label: "Name", required: true },
                    hint: "What the token is for, such as the name of the program",
                  },
                  { name: "days", label: "Expires", pointer: "/expires_on", options: EXPIRIES },
                ]}
              >
                <PermissionPicker groups={all} chosen={chosen} onChange={setChosen} />
              </Form>
            )}
          </Read>
        )}
      </Card>
    </Page>
  );
}

/**
 * Throws if no permission is chosen. The REST API's own error would mention policies, which this page does not show.
 */
function checkChosen(permissions: readonly string[]): void {
  if (permissions.length === 0) throw refuse("Choose at least one permission.");
}

const policyOf = (permissions: readonly string[]) => ({
  effect: "allow",
  permission_groups: permissions.map((id) => ({ id })),
});

export function TokenPage() {
  const { id = "" } = useParameters();
  const { restPath, may } = useAccount();
  const path = restPath(`/tokens/${encodeURIComponent(id)}`);
  return (
    <RestPage<WireToken>
      path={path}
      everyMs={30_000}
      title={(token) => token?.name ?? "API token"}
      above={["API tokens", "account"]}
    >
      {(token, reload) => (
        <>
          <Card title="Token">
            <Facts
              of={{
                "Ends with": <code>…{token.last_four}</code>,
                State: <State of={token.status} tones={TONES} />,
                Made: <Time at={token.issued_on} />,
                "Last used": <Time at={token.last_used_on} />,
                Expires: <Time at={token.expires_on} />,
              }}
            />
          </Card>
          {may("account.write") && (
            <>
              <Changes {...{ token, path, reload }} />
              <Secret {...{ token, path, reload }} />
            </>
          )}
        </>
      )}
    </RestPage>
  );
}

interface TokenProps {
  token: WireToken;
  path: string;
  reload: () => void;
}

const draftOf = ({ name, status }: WireToken) => ({ name, isOn: status === "active" });

const areSame = (some: readonly string[], others: readonly string[]) =>
  String([...some].sort()) === String([...others].sort());

/** A PUT replaces the whole token. The fields that the person did not change are sent as they are at that time. */
function Changes({ token, path, reload }: TokenProps) {
  const groups = useGroups();
  const [loaded, setLoaded] = useState(token);
  const form = useForm(() => draftOf(token));
  const [chosen, setChosen] = useState(permissionsOf(token));
  const save = async () => {
    checkChosen(chosen);
    const present = await resultOf<WireToken>({ path });
    const before = draftOf(loaded);
    const { name, isOn } = form.values;
    const { expires_on, not_before } = present;
    const isChosen = !areSame(chosen, permissionsOf(loaded));
    const json = {
      name: name === before.name ? present.name : name,
      policies: [policyOf(isChosen ? chosen : permissionsOf(present))],
      ...(isOn !== before.isOn && { status: isOn ? "active" : "disabled" }),
      ...(expires_on && { expires_on }),
      ...(not_before && { not_before }),
    };
    const saved = await resultOf<WireToken>({ method: "PUT", path, json });
    setLoaded(saved);
    form.change(draftOf(saved));
    setChosen(permissionsOf(saved));
    reload();
    return "Saved.";
  };
  return (
    <Card title="Change">
      <Read reading={groups}>
        {(all) => (
          <Form
            submit="Save"
            onSubmit={save}
            form={form}
            fields={[
              { name: "name", label: "Name", required: true },
              // An expired token does not say whether it is disabled too.
              loaded.status !== "expired" && {
                ...{ name: "isOn", label: "Active" },
                hint: "A token that is not active is refused until you tick this again",
              },
            ]}
          >
            <PermissionPicker groups={all} chosen={chosen} onChange={setChosen} />
          </Form>
        )}
      </Read>
    </Card>
  );
}

function Secret({ token, path, reload }: TokenProps) {
  const { go } = useAccount();
  const [secret, setSecret] = useState<string>();
  return (
    <Card title="Secret">
      {secret && <SecretOnce label="New token" value={secret} />}
      <p class="quiet">
        A new secret replaces the present one at once. A revoked token opens nothing any more, and
        does not come back.
      </p>
      <div class="actions">
        <ConfirmButton
          label="New secret"
          title={`Give ${token.name} a new secret?`}
          text="Programs that use the present secret are refused from now on."
          request={{ method: "PUT", path: `${path}/value` }}
          done={(rolled: string) => {
            setSecret(rolled);
            reload();
          }}
        />
        <Revoke token={token} done={() => go("account")} />
      </div>
    </Card>
  );
}
