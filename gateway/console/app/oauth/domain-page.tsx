/** The page for the verification of a client's domain, and for the promotion of the client from private to public. */
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import type { WireOAuthClient } from "../lib/wire.ts";
import { Copyable } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { Facts, Time } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
import { DomainState, OfClient, type OfClientProps, Visibility } from "./clients-page.tsx";

export function DomainPage() {
  return (
    <OfClient tab="domain">
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
  const found = client.client_uri_verification;
  const form = useForm({ client_uri: client.client_uri ?? "" });
  const verify = async () => {
    await ask({ method: "PATCH", path, json: form.values });
    reload();
  };
  return (
    <Card title="Domain">
      {found && (
        <>
          <p>
            Add this TXT record to the DNS of <strong>{found.host}</strong>. The platform looks for
            it by itself, and this page follows.
          </p>
          <Facts
            of={{
              Type: "TXT",
              Host: <Copyable value={found.host} />,
              Text: <Copyable value={found.text} />,
              State: (
                <span aria-live="polite">
                  <DomainState client={client} />
                </span>
              ),
              "Last answer": found.last_answer ?? "none yet",
              Checked: <Time at={found.last_checked_at} />,
              "Next check": found.next_check_at && <Time at={found.next_check_at} />,
            }}
          />
        </>
      )}
      {may("oauth-clients.write") && (
        <Form
          submit={found ? "Check again" : "Verify the domain"}
          onSubmit={verify}
          form={form}
          fields={[
            {
              ...{ name: "client_uri", label: "Client URL", type: "url", required: true },
              hint: "The home page of the application. Its host is what gets verified.",
              placeholder: "https://bot.example.com",
            },
          ]}
        />
      )}
    </Card>
  );
}

/** Returns the conditions of the promotion, and whether each is met. */
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
            request={{ method: "PATCH", path, json: { visibility: "public" } }}
            done={reload}
          />
        </p>
      )}
    </Card>
  );
}
