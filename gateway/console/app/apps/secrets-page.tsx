/** An app's secrets, which are put and taken away, and never shown. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireApp } from "../lib/wire.ts";
import { Time } from "../parts/bits.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { AppTabs } from "./app-tabs.tsx";

type Secret = WireApp["secrets"][number];

export function SecretsPage({ parameters: { app = "" } }: PageParameters) {
  const { restPath, placeOf, may } = useAccount();
  const path = restPath(`/apps/${app}/secrets`);
  const secrets = useRest<Secret[]>(path);
  const canWrite = may("apps.write");
  const remove = (name: string) => async () => {
    await ask({ method: "DELETE", path: `${path}/${name}` });
    secrets.reload();
  };
  return (
    <Page title={app} above={{ label: "Apps and agents", to: placeOf("apps") }} request={{ path }}>
      <AppTabs app={app} current="/secrets" />
      <Card>
        <List
          reading={secrets}
          label="Secrets"
          noun="secret"
          keyOf={({ name }) => name}
          empty={
            <Empty title="There is no secret yet">
              <p>Code reads them in env, and declared webhooks are checked with them.</p>
            </Empty>
          }
          columns={[
            { name: "Name", cell: ({ name }) => <code>{name}</code> },
            { name: "Put", cell: ({ modified_on: at }) => <Time at={at} /> },
          ]}
          actions={({ name }) =>
            canWrite && (
              <ConfirmButton
                label="Take away"
                title={`Take ${name} away?`}
                text="The app no longer has it after its next start."
                onConfirm={remove(name)}
              />
            )
          }
        />
      </Card>
      {canWrite && <Put path={path} reload={secrets.reload} />}
    </Page>
  );
}

function Put({ path, reload }: { path: string; reload: () => void }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [put, setPut] = useState("");
  const send = async () => {
    await ask({ method: "PUT", path: `${path}/${encodeURIComponent(name)}`, json: { value } });
    setPut(name);
    setName("");
    setValue("");
    reload();
  };
  return (
    <Card title="Put a secret">
      <Form submit="Put" onSubmit={send}>
        <TextField
          label="Name"
          hint="As in code: letters, digits and _. A name that exists gets the new value"
          value={name}
          onChange={setName}
          isCode
          required
        />
        <TextField
          label="Value"
          type="password"
          hint="It is not shown again, here or elsewhere"
          pointer="/value"
          value={value}
          onChange={setValue}
          required
        />
        <p role="status">{put && `${put} is put. The app has it from its next start on.`}</p>
      </Form>
    </Card>
  );
}
