/** Changes the registration of an OAuth client. */
import { useState } from "preact/hooks";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireScope } from "../lib/wire.ts";
import { Form } from "../parts/form.tsx";
import { Card, Read } from "../parts/page.tsx";
import { ClientFields, draftOf, linksOf, MoreClientFields, requestOf } from "./client-fields.tsx";
import { checkDraft } from "./new-client-page.tsx";
import { OfClient, type OfClientProps } from "./of-client.tsx";

export function SettingsPage({ parameters: { id = "" } }: PageParameters) {
  return (
    <OfClient id={id} tab="settings">
      {(props) => <Settings {...props} />}
    </OfClient>
  );
}

function Settings({ client, path, reload }: OfClientProps) {
  const scopes = useRest<WireScope[]>("/oauth/scopes");
  const [draft, setDraft] = useState(() => draftOf(client));
  const [isSaved, setSaved] = useState(false);
  const save = async () => {
    setSaved(false);
    checkDraft(draft);
    await ask({ method: "PATCH", path, json: { ...requestOf(draft), ...linksOf(draft, client) } });
    setSaved(true);
    reload();
  };
  const fields = {
    draft,
    onChange: (change: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...change })),
  };
  return (
    <Card title="Settings">
      <Read reading={scopes}>
        {(all) => (
          <Form submit="Save" onSubmit={save}>
            <ClientFields {...fields} scopes={all} />
            <MoreClientFields {...fields} scopes={all} />
            <p role="status">{isSaved ? "Saved." : ""}</p>
          </Form>
        )}
      </Read>
    </Card>
  );
}
