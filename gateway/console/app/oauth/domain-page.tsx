/** The proof of a client's domain, and its way from private to public. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import type { WireOAuthClient } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { Copyable } from "../parts/copy.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card } from "../parts/page.tsx";
import { DomainState, Visibility } from "./clients-page.tsx";
import { OfClient, type OfClientProps } from "./of-client.tsx";

export function DomainPage({ parameters: { id = "" } }: PageParameters) {
  return (
    <OfClient id={id} tab="domain">
      {(props) => (
        <>
          <Domain {...props} />
          <Promotion {...props} />
        </>
      )}
    </OfClient>
  );
}

function Domain({ client, path, reload }: OfClientProps) {
  const { may } = useAccount();
  const verification = client.client_uri_verification;
  const [uri, setUri] = useState(client.client_uri ?? "");
  const verify = async () => {
    await ask({ method: "PATCH", path, json: { client_uri: uri } });
    reload();
  };
  return (
    <Card title="Domain">
      {verification && (
        <>
          <p>
            Add this TXT record to the DNS of <strong>{verification.host}</strong>. The platform
            looks for it by itself, and this page follows.
          </p>
          <Facts
            rows={[
              ["Type", "TXT"],
              ["Host", <Copyable key="host" value={verification.host} />],
              ["Text", <Copyable key="text" value={verification.text} />],
              [
                "State",
                <span key="state" aria-live="polite">
                  <DomainState client={client} />
                </span>,
              ],
              ["Last answer", verification.last_answer ?? "none yet"],
              ["Checked", <Time key="checked" at={verification.last_checked_at} />],
              verification.next_check_at !== undefined && [
                "Next check",
                <Time key="next" at={verification.next_check_at} />,
              ],
            ]}
          />
        </>
      )}
      {may("oauth-clients.write") && (
        <Form submit={verification ? "Check again" : "Verify the domain"} onSubmit={verify}>
          <TextField
            label="Client URL"
            type="url"
            pointer="/client_uri"
            hint="The home page of the application. Its host is what gets verified."
            placeholder="https://bot.example.com"
            value={uri}
            onChange={setUri}
            required
          />
        </Form>
      )}
    </Card>
  );
}

/** The conditions of promotion, and whether each is met. */
function conditionsOf(client: WireOAuthClient): (readonly [string, boolean])[] {
  const verification = client.client_uri_verification;
  const identity = ["openid", "email", "offline_access"];
  return [
    ["A name", client.client_name !== ""],
    ["A logo URL", client.logo_uri !== undefined],
    ["A client URL", client.client_uri !== undefined],
    [
      "A scope that opens something of an account",
      client.scopes.some((one) => !identity.includes(one)),
    ],
    [
      "A verified domain",
      verification?.status === "verified" && verification.missing_since === undefined,
    ],
  ];
}

function Promotion({ client, path, reload }: OfClientProps) {
  const { may } = useAccount();
  const conditions = conditionsOf(client);
  const promote = async () => {
    await ask({ method: "PATCH", path, json: { visibility: "public" } });
    reload();
  };
  if (client.visibility === "public") {
    return (
      <Card title="Visibility">
        <p>
          <Visibility client={client} /> since <Time at={client.promoted_at} />. Everybody who has a
          user here can allow it.
        </p>
      </Card>
    );
  }
  return (
    <Card title="Visibility">
      <p>
        <Visibility client={client} /> Only members of this account can allow it. A public client is
        open to everybody who has a user here, and stays public.
      </p>
      <ul class="lines conditions">
        {conditions.map(([name, isMet]) => (
          <li key={name} class={isMet ? "met" : ""}>
            {name} <span class="quiet">{isMet ? "is there" : "is missing"}</span>
          </li>
        ))}
      </ul>
      {may("oauth-clients.write") && (
        <p>
          <ConfirmButton
            label="Make it public"
            title={`Make ${client.client_name} public?`}
            text="Everybody who has a user here can allow it from now on. It cannot be made private again."
            isDisabled={conditions.some(([, isMet]) => !isMet)}
            onConfirm={promote}
          />
        </p>
      )}
    </Card>
  );
}
