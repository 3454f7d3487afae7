/** Registers an OAuth client, and shows its secret this once. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, RestError } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { CreatedOAuthClient, WireScope } from "../lib/wire.ts";
import { Facts } from "../parts/bits.tsx";
import { Copyable, SecretOnce } from "../parts/copy.tsx";
import { Form } from "../parts/form.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import {
  ClientFields,
  EMPTY_DRAFT,
  linksOf,
  MoreClientFields,
  requestOf,
} from "./client-fields.tsx";

export function NewClientPage() {
  const { restPath, placeOf } = useAccount();
  const scopes = useRest<WireScope[]>("/oauth/scopes");
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [made, setMade] = useState<CreatedOAuthClient>();
  const request = {
    method: "POST" as const,
    path: restPath("/oauth_clients"),
    json: { ...requestOf(draft), ...linksOf(draft) },
  };
  const create = async () => {
    checkDraft(draft);
    setMade((await ask<CreatedOAuthClient>(request)).result);
    scrollTo(0, 0);
  };
  const fields = {
    draft,
    onChange: (change: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...change })),
  };
  return (
    <Page
      title="New OAuth client"
      above={{ label: "OAuth clients", to: placeOf("oauth-clients") }}
      lead="It is private at first: only members of this account can allow it."
      request={request}
    >
      {made ? (
        <Registered client={made} />
      ) : (
        <Card>
          <Read reading={scopes}>
            {(all) => (
              <Form submit="Register the client" onSubmit={create}>
                <ClientFields {...fields} scopes={all} />
                <MoreClientFields {...fields} scopes={all} />
              </Form>
            )}
          </Read>
        </Card>
      )}
    </Page>
  );
}

/** Refuses in the words of the page. */
export function checkDraft({
  scopes,
  grantTypes,
}: Pick<typeof EMPTY_DRAFT, "scopes" | "grantTypes">): void {
  const faults: { message: string; source: { pointer: string } }[] = [];
  if (scopes.length === 0) {
    faults.push({ message: "Select at least one scope.", source: { pointer: "/scopes" } });
  }
  if (!grantTypes.includes("authorization_code")) {
    const message = "Authorization code is needed: a refresh token follows from it.";
    faults.push({ message, source: { pointer: "/grant_types" } });
  }
  if (faults.length > 0) throw new RestError(400, faults);
}

function Registered({ client }: { client: CreatedOAuthClient }) {
  const { placeOf } = useAccount();
  const { client_id: id, client_secret: secret, client_name: name } = client;
  return (
    <Card title={`${name} is registered`}>
      {secret && <SecretOnce label="Client secret" value={secret} />}
      <Facts rows={[["Client ID", <Copyable key="id" value={id} />]]} />
      <p class="actions">
        <Link class="button small" to={placeOf(`oauth-clients/${id}/try-it`)}>
          Try it
        </Link>
        <Link class="button small second" to={placeOf(`oauth-clients/${id}`)}>
          Go to the client
        </Link>
      </p>
    </Card>
  );
}
