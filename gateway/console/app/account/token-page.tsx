/** One API token: what it opens, a new secret for it, and its end. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { navigate } from "../lib/router.tsx";
import { type Reading, useRest } from "../lib/use-rest.ts";
import type { PermissionGroup, WireToken } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { SecretOnce } from "../parts/copy.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Check, Form, TextField } from "../parts/form.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { checkChosen, policyOf } from "./new-token-page.tsx";
import { PermissionPicker } from "./permission-picker.tsx";
import { permissionsOf, TokenState } from "./tokens-page.tsx";

export function TokenPage({ parameters: { id } }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const path = restPath(`/tokens/${id}`);
  const token = useRest<WireToken>(path);
  return (
    <Page
      title={token.value?.name ?? "API token"}
      above={{ label: "API tokens", to: placeOf("account") }}
      request={{ path }}
    >
      <Read reading={token}>{(value) => <Token token={value} path={path} reading={token} />}</Read>
    </Page>
  );
}

interface TokenProps {
  token: WireToken;
  path: string;
  reading: Reading<WireToken>;
}

function Token(props: TokenProps) {
  const { token } = props;
  const { may } = useAccount();
  return (
    <>
      <Card title="Token">
        <Facts
          rows={[
            ["Ends with", <code key="last">…{token.last_four}</code>],
            ["State", <TokenState key="state" status={token.status} />],
            ["Made", <Time key="made" at={token.issued_on} />],
            ["Expires", <Time key="expires" at={token.expires_on} />],
          ]}
        />
      </Card>
      {may("account.write") && (
        <>
          <Changes {...props} />
          <Secret {...props} />
        </>
      )}
    </>
  );
}

function Changes({ token, path, reading }: TokenProps) {
  const { restPath } = useAccount();
  const groups = useRest<PermissionGroup[]>(restPath("/tokens/permission_groups?per_page=50"));
  const [name, setName] = useState(token.name);
  const [isOn, setOn] = useState(token.status !== "disabled");
  const [chosen, setChosen] = useState(permissionsOf(token));
  const [isSaved, setSaved] = useState(false);
  const save = async () => {
    checkChosen(chosen);
    const { expires_on, not_before } = token;
    const json = {
      name,
      policies: [policyOf(chosen)],
      status: isOn ? "active" : "disabled",
      ...(expires_on && { expires_on }),
      ...(not_before && { not_before }),
    };
    await ask({ method: "PUT", path, json });
    setSaved(true);
    reading.reload();
  };
  return (
    <Card title="Change">
      <Read reading={groups}>
        {(all) => (
          <Form submit="Save" onSubmit={save}>
            <TextField label="Name" pointer="/name" value={name} onChange={setName} required />
            <Check
              label="It opens what is chosen below"
              hint="Without it, the token is refused until you tick it again"
              isOn={isOn}
              onChange={setOn}
            />
            <PermissionPicker groups={all} chosen={chosen} onChange={setChosen} />
            <p role="status">{isSaved ? "Saved." : ""}</p>
          </Form>
        )}
      </Read>
    </Card>
  );
}

function Secret({ token, path, reading }: TokenProps) {
  const { placeOf } = useAccount();
  const [secret, setSecret] = useState<string>();
  const roll = async () => {
    setSecret((await ask<string>({ method: "PUT", path: `${path}/value` })).result);
    reading.reload();
  };
  const revoke = async () => {
    await ask({ method: "DELETE", path });
    navigate(placeOf("account"));
  };
  return (
    <Card title="Secret">
      {secret && <SecretOnce label="New token" value={secret} />}
      <p class="quiet">
        A new secret replaces the present one at once. A revoked token opens nothing any more, and
        does not come back.
      </p>
      <div class="actions">
        <ConfirmButton
          label="Roll"
          title={`Give ${token.name} a new secret?`}
          text="Programs that use the present secret are refused from now on."
          onConfirm={roll}
        />
        <ConfirmButton
          label="Revoke"
          title={`Revoke ${token.name}?`}
          text="Programs that use the token are refused from now on. It cannot be undone."
          onConfirm={revoke}
        />
      </div>
    </Card>
  );
}
