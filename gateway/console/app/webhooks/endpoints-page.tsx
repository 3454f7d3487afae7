/**
 * The page of the webhook endpoints that an app declares, with the agents that receive events, and a form that sends
 * a signed test event.
 */

import { useState } from "preact/hooks";
import { appPath, webhooksPlace } from "../apps/agent-place.ts";
import { AgentsList, useAgents } from "../apps/agents-page.tsx";
import { useAccount } from "../lib/account.tsx";
import { RestError, refuse } from "../lib/rest.ts";
import { ROOT, useParameters, usePlace } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireApp, WireAppEntry } from "../lib/wire.ts";
import { Copyable } from "../parts/button.tsx";
import { type Choice, Fields, Form, useForm } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { Table } from "../parts/list.tsx";
import { Empty, parseJson } from "../parts/note.tsx";
import { Card, Page, Read, RestPage } from "../parts/page.tsx";
import { endpointsOf } from "./status.tsx";
import { type Endpoint, sampleBody, signTest } from "./test-event.ts";

export function EndpointsPage() {
  const { restPath, go } = useAccount();
  const { query } = usePlace();
  const path = restPath("/apps?per_page=100");
  const apps = useRest<WireAppEntry[]>(path);
  const app = query.get("app") ?? apps.value?.[0]?.name;
  return (
    <Page
      title="Webhooks"
      lead="Events that came to your agents: each is verified, stored, and delivered in order."
      request={{ path: app === undefined ? path : restPath(`${appPath(app)}/agents`) }}
    >
      <Read reading={apps}>
        {(all) =>
          app === undefined ? (
            <Card>
              <Empty title="There is no app yet">
                <p>Webhooks come to agents of an app. Deploy yours, or begin with the example.</p>
                <p>
                  <ButtonLink isMain to="apps/-/example">
                    Try an example
                  </ButtonLink>
                </p>
              </Empty>
            </Card>
          ) : (
            <>
              <Card>
                <div class="filters">
                  <Fields
                    form={{
                      values: { app },
                      change: ({ app: name = "" }) => go(endpointsOf(name)),
                    }}
                    fields={[
                      {
                        ...{ name: "app", label: "App" },
                        options: all.map(({ name }): Choice => [name, name]),
                      },
                    ]}
                  />
                </div>
              </Card>
              <OfApp key={app} name={app} />
            </>
          )
        }
      </Read>
    </Page>
  );
}

function OfApp({ name }: { name: string }) {
  const app = useRest<WireApp>(useAccount().restPath(appPath(name)));
  return (
    <>
      <Card title="Endpoints">
        <Read reading={app}>{(value) => <Endpoints app={value} />}</Read>
      </Card>
      <AgentsList
        title="Agents"
        app={name}
        list={useAgents(name)}
        isOfWebhooks
        empty={[
          "No event has arrived yet",
          "Each agent that gets an event is listed here, with its deliveries.",
        ]}
      />
    </>
  );
}

function Endpoints({ app }: { app: WireApp }) {
  const { may } = useAccount();
  const endpoints = app.config?.webhooks ?? [];
  if (endpoints.length === 0) {
    return (
      <Empty title="The app declares no endpoint">
        Name one under webhooks in its trunkline.jsonc, and deploy it.
      </Empty>
    );
  }
  return (
    <Table
      label="Endpoints"
      keyOf={({ path }) => path}
      rows={endpoints}
      columns={{
        Address: ({ path }) => <Copyable value={app.machine_url.replace(/\/$/, "") + path} />,
        Provider: ({ provider }) => provider,
        "Goes to": ({ agent }) => <code>{classOf(app, agent)}</code>,
      }}
      actions={({ path }) =>
        may("apps.write") && (
          <ButtonLink to={`webhooks/${app.name}/endpoints/${encodeURIComponent(path)}/test`}>
            Send a test
          </ButtonLink>
        )
      }
    />
  );
}

/** Returns the class name of the agents behind a binding. */
const classOf = (app: WireApp, binding: string) =>
  app.config?.agents.find((one) => one.binding === binding)?.class_name ?? binding;

export function TestPage() {
  const { app = "", endpoint: path = "" } = useParameters();
  const { restPath } = useAccount();
  return (
    <RestPage<WireApp>
      path={restPath(appPath(app))}
      request={null}
      title="Send a test"
      above={["Webhooks", endpointsOf(app)]}
      lead={
        <>
          To <code>{path}</code> of {app}, signed as the provider signs.
        </>
      }
    >
      {(value) => {
        const endpoint = value.config?.webhooks.find((one) => one.path === path);
        return (
          <Card>
            {endpoint ? (
              <Test app={value} endpoint={endpoint} />
            ) : (
              <Empty title="The app declares no such endpoint">
                The version that serves now has others. Go back and choose one of them.
              </Empty>
            )}
          </Card>
        );
      }}
    </RestPage>
  );
}

function Test({ app, endpoint }: { app: WireApp; endpoint: Endpoint }) {
  const { account } = useAccount();
  const form = useForm(() => ({
    entity: "acme/tools",
    eventType: "",
    body: sampleBody(endpoint),
    secret: "",
  }));
  const [sent, setSent] = useState<string>();
  const className = classOf(app, endpoint.agent);
  const send = async () => {
    checkBody(form.values.body);
    const signed = await signTest(endpoint, form.values, app.machine_url.replace(/\/$/, ""));
    const response = await fetch(`${ROOT}/apps/${account.id}/${app.name}${signed.path}`, {
      method: "POST",
      headers: signed.headers,
      body: signed.body,
      // Sends no cookies, because a real sender of webhooks is not signed in.
      credentials: "omit",
    });
    if (!response.ok) throw await refusalOf(response);
    setSent(agentNameOf(form.values.entity));
  };
  return (
    <>
      {sent !== undefined && (
        <section class="note good" aria-label="The test" role="status">
          <p>The endpoint took it.</p>
          <p>
            <Link to={webhooksPlace({ app: app.name, className, name: sent })}>
              Show the deliveries of {sent}
            </Link>
          </p>
        </section>
      )}
      <Form
        submit="Send the test"
        onSubmit={send}
        form={form}
        fields={[
          {
            ...{ name: "entity", label: "Entity", required: true },
            hint: `What the event is about, such as acme/tools: names the agent of the class ${className}`,
          },
          {
            ...{ name: "eventType", label: "Event type" },
            hint: "Leave it empty for a type that the provider has",
          },
          {
            ...{ name: "body", label: "Body", rows: 12, isCode: true, required: true },
            hint: "JSON. The entity and the event's id are put in where the app reads them",
          },
          {
            ...{ name: "secret", label: "Signing secret", type: "password", required: true },
            hint: `The value of ${[endpoint.secret].flat().join(" or ")}. It signs in this page, and goes nowhere`,
          },
        ]}
      />
    </>
  );
}

/** Returns the name of the agent for an entity, as endpoints derive it. */
const agentNameOf = (entity: string) => entity.trim().toLowerCase().replaceAll("/", "-");

function checkBody(text: string): void {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw refuse("The body is no JSON object.", "/body");
}

async function refusalOf(response: Response): Promise<RestError> {
  try {
    const { errors } = await response.json();
    // Changes status 401, because it means a wrong signature here and not an ended session.
    return new RestError(response.status === 401 ? 400 : response.status, errors);
  } catch {
    return new RestError(response.status, [
      { message: `The endpoint answered ${response.status}.` },
    ]);
  }
}
