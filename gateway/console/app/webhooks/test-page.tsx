/** Sends an event to an endpoint of an app, signed as its provider signs. */
import { useState } from "preact/hooks";
import { webhooksPlace } from "../apps/agent-place.ts";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { RestError } from "../lib/rest.ts";
import { Link, ROOT } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireApp } from "../lib/wire.ts";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Empty, Page, Read } from "../parts/page.tsx";
import { classOf } from "./endpoints-page.tsx";
import { type Endpoint, sampleBody, signTest } from "./test-event.ts";

export function TestPage({ parameters: { app = "", endpoint: path = "" } }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const reading = useRest<WireApp>(restPath(`/apps/${app}`));
  return (
    <Page
      title="Send a test"
      above={{ label: "Webhooks", to: `${placeOf("webhooks")}?app=${app}` }}
      lead={
        <>
          To <code>{path}</code> of {app}, signed as the provider signs.
        </>
      }
    >
      <Read reading={reading}>
        {(value) => {
          const endpoint = value.config?.webhooks.find((one) => one.path === path);
          return (
            <Card>
              {endpoint ? (
                <Test app={value} endpoint={endpoint} />
              ) : (
                <Empty title="The app declares no such endpoint">
                  <p>The version that serves now has others. Go back and choose one of them.</p>
                </Empty>
              )}
            </Card>
          );
        }}
      </Read>
    </Page>
  );
}

function Test({ app, endpoint }: { app: WireApp; endpoint: Endpoint }) {
  const { account, placeOf } = useAccount();
  const [entity, setEntity] = useState("");
  const [eventType, setEventType] = useState("");
  const [body, setBody] = useState(() => sampleBody(endpoint));
  const [secret, setSecret] = useState("");
  const [sent, setSent] = useState<string>();
  const className = classOf(app, endpoint.agent);
  const send = async () => {
    const event = { entity, eventType, body: parsed(body), secret };
    const signed = await signTest(endpoint, event, app.machine_url.replace(/\/$/, ""));
    const response = await fetch(`${ROOT}/apps/${account.id}/${app.name}${signed.path}`, {
      method: "POST",
      headers: signed.headers,
      body: signed.body,
      // The sender of a webhook is not signed in.
      credentials: "omit",
    });
    if (!response.ok) throw await refusalOf(response);
    setSent(agentNameOf(entity));
  };
  return (
    <>
      {sent !== undefined && (
        <section class="note good" aria-label="The test" role="status">
          <p>The endpoint took it.</p>
          <p>
            <Link to={placeOf(webhooksPlace({ app: app.name, className, name: sent }))}>
              Show the deliveries of {sent}
            </Link>
          </p>
        </section>
      )}
      <Form submit="Send the test" onSubmit={send}>
        <TextField
          label="Entity"
          hint={`What the event is about, such as acme/tools: names the agent of the class ${className}`}
          value={entity}
          onChange={setEntity}
          required
        />
        <TextField
          label="Event type"
          hint="Empty is one that the provider has"
          value={eventType}
          onChange={setEventType}
        />
        <TextField
          label="Body"
          hint="JSON. The entity and the event's id are put in where the app reads them"
          rows={8}
          value={body}
          onChange={setBody}
          isCode
          required
        />
        <TextField
          label="Signing secret"
          type="password"
          hint={`The value of ${[endpoint.secret].flat().join(" or ")}. It signs in this page, and goes nowhere`}
          value={secret}
          onChange={setSecret}
          required
        />
      </Form>
    </>
  );
}

/** Endpoints name agents so. */
const agentNameOf = (entity: string) => entity.trim().toLowerCase().replaceAll("/", "-");

/** The body, once it is sure to be an object. */
function parsed(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  } catch {
    // Said below.
  }
  throw new RestError(400, [{ message: "The body is no JSON object." }]);
}

async function refusalOf(response: Response): Promise<RestError> {
  try {
    const { errors } = await response.json();
    // The sender's signature, not the person's session.
    return new RestError(response.status === 401 ? 400 : response.status, errors);
  } catch {
    return new RestError(response.status, [
      { message: `The endpoint answered ${response.status}.` },
    ]);
  }
}
