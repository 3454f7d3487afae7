/** Where webhooks come in: the endpoints that an app declares, and the agents that they go to. */
import { AgentsList } from "../apps/agents-list.tsx";
import { useAccount } from "../lib/account.tsx";
import { Link, navigate, usePlace } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireApp, WireAppEntry } from "../lib/wire.ts";
import { Copyable } from "../parts/copy.tsx";
import { SelectField } from "../parts/form.tsx";
import { Card, Empty, Page, Read } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";

export function EndpointsPage() {
  const { restPath, placeOf } = useAccount();
  const { query } = usePlace();
  const path = restPath("/apps?per_page=100");
  const apps = useRest<WireAppEntry[]>(path);
  const chosen = query.get("app") ?? apps.value?.[0]?.name;
  return (
    <Page
      title="Webhooks"
      lead="Events that came to your agents: each is verified, stored, and delivered in order."
      request={{ path: chosen === undefined ? path : restPath(`/apps/${chosen}/agents`) }}
    >
      <Read reading={apps}>
        {(all) =>
          chosen === undefined ? (
            <Card>
              <Empty title="There is no app yet">
                <p>Webhooks come to agents of an app. Deploy one first.</p>
                <p>
                  <Link to={placeOf("apps")}>Go to apps and agents</Link>
                </p>
              </Empty>
            </Card>
          ) : (
            <>
              <Card>
                <div class="filters">
                  <SelectField
                    label="App"
                    value={chosen}
                    onChange={(name) => navigate(`${placeOf("webhooks")}?app=${name}`)}
                    options={all.map(({ name }) => ({ value: name, label: name }))}
                  />
                </div>
              </Card>
              <OfApp key={chosen} name={chosen} />
            </>
          )
        }
      </Read>
    </Page>
  );
}

function OfApp({ name }: { name: string }) {
  const { restPath } = useAccount();
  const app = useRest<WireApp>(restPath(`/apps/${name}`));
  return (
    <>
      <Card title="Endpoints">
        <Read reading={app}>{(value) => <Endpoints app={value} />}</Read>
      </Card>
      <Card title="Agents">
        <AgentsList
          app={name}
          isOfWebhooks
          empty={
            <Empty title="No event has arrived yet">
              <p>Each agent that gets an event is listed here, with its deliveries.</p>
            </Empty>
          }
        />
      </Card>
    </>
  );
}

function Endpoints({ app }: { app: WireApp }) {
  const { placeOf, may } = useAccount();
  const endpoints = app.config?.webhooks ?? [];
  if (endpoints.length === 0) {
    return (
      <Empty title="The app declares no endpoint">
        <p>Name one under webhooks in its trunkline.jsonc, and deploy it.</p>
      </Empty>
    );
  }
  return (
    <Table
      label="Endpoints"
      keyOf={({ path }) => path}
      rows={endpoints}
      columns={[
        {
          name: "Address",
          cell: ({ path }) => (
            <Copyable label="address" value={app.machine_url.replace(/\/$/, "") + path} />
          ),
        },
        { name: "Provider", cell: ({ provider }) => provider },
        { name: "Goes to", cell: ({ agent }) => <code>{classOf(app, agent)}</code> },
      ]}
      actions={({ path }) =>
        may("apps.write") && (
          <Link
            class="button small second"
            to={placeOf(`webhooks/${app.name}/endpoints/${encodeURIComponent(path)}/test`)}
          >
            Send a test
          </Link>
        )
      }
    />
  );
}

/** The class of a binding. */
export const classOf = (app: WireApp, binding: string) =>
  app.config?.agents.find((one) => one.binding === binding)?.class_name ?? binding;
