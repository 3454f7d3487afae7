/** The list of the account's apps, and the pages of one app's versions and secrets. */
import { useAccount } from "../lib/account.tsx";
import { formatBytes, formatNumber } from "../lib/format.ts";
import { ask } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgentUsage, WireApp, WireAppEntry } from "../lib/wire.ts";
import { Copyable } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { FormCard, useForm } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, TableCard, useList } from "../parts/list.tsx";
import { Badge, Empty, ErrorNote, Facts, Meter, State, Time, type Tone } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";
import { appFrame, appPath } from "./agent-place.ts";

const REFRESH_MS = 15_000;

export function AppsPage() {
  const { restPath } = useAccount();
  const apps = useList<WireAppEntry>(restPath("/apps"), { everyMs: REFRESH_MS });
  const {
    value: usage,
    error,
    reload,
  } = useRest<WireAgentUsage>(restPath("/agents/usage"), REFRESH_MS);
  const usageOf = (name: string) => usage?.apps.find((one) => one.name === name);
  return (
    <Page
      title="Apps and agents"
      lead="Your code, and the agents that it runs: each with a database, timers and WebSockets of its own."
      request={apps}
    >
      <ListCard
        list={apps}
        label="Apps"
        noun="app"
        keyOf={({ name }) => name}
        empty={["There is no app yet", <Deploy key="deploy" />]}
        columns={{
          Name: ({ name }) => <Link to={`apps/${name}`}>{name}</Link>,
          Serves: ({ serving_version: version }) => <Serving version={version} />,
          Agents: ({ name }) => formatNumber(usageOf(name)?.agents ?? 0),
          Keeps: ({ name }) => formatBytes(usageOf(name)?.stored_bytes ?? 0),
          Changed: ({ modified_on: at }) => <Time at={at} />,
        }}
      />
      {apps.reading.hasAnswered && (
        <Card title="Limits of the account">
          {error && <ErrorNote error={error} retry={reload} />}
          <Meter
            label="Agents"
            used={usage?.agents}
            limit={usage?.agents_limit}
            format={formatNumber}
          />
          <Meter
            label="Storage of agents"
            used={usage?.stored_bytes}
            limit={usage?.stored_bytes_limit}
            format={formatBytes}
          />
        </Card>
      )}
    </Page>
  );
}

function Serving({ version }: { version: number | null }) {
  if (version === null) return <Badge tone="quiet">nothing yet</Badge>;
  return <Badge tone="good">version {version}</Badge>;
}

function Deploy() {
  const { may } = useAccount();
  return (
    <>
      {may("apps.write") && (
        <>
          <p>An example shows webhooks and agents at work, without a terminal.</p>
          <p>
            <ButtonLink isMain to="apps/-/example">
              Try an example
            </ButtonLink>
          </p>
        </>
      )}
      <p>Deploy your own from a terminal, in the folder that has its trunkline.jsonc:</p>
      <Copyable value="npx trunkline deploy" />
    </>
  );
}

export function AppPage() {
  const { app: name = "" } = useParameters();
  const { restPath, may, go } = useAccount();
  const path = restPath(appPath(name));
  return (
    <RestPage<WireApp> {...appFrame(name, "")} path={path} everyMs={5_000}>
      {(app, reload) => (
        <>
          <Overview app={app} />
          <Versions app={app} path={path} reload={reload} />
          {may("apps.write") && (
            <Card title="Delete">
              <p class="quiet">
                The app ends with its secrets, its log, and all of its agents and what they keep.
              </p>
              <ConfirmButton
                label="Delete the app"
                title={`Delete ${name}?`}
                text="Its agents and everything that they keep go for good. It cannot be undone."
                typed={name}
                request={{ method: "DELETE", path }}
                done={() => go("apps")}
              />
            </Card>
          )}
        </>
      )}
    </RestPage>
  );
}

function Overview({ app }: { app: WireApp }) {
  const classes = app.config?.agents.map(({ class_name: name }) => name) ?? [];
  const open = (
    <a class="button small second" href={app.url} target="_blank" rel="noreferrer">
      Open the app
    </a>
  );
  return (
    <Card title="App" actions={app.serving_version !== null && open}>
      <Facts
        of={{
          Serves: <Serving version={app.serving_version} />,
          "For people": <Copyable value={app.url} />,
          "For machines": <Copyable value={app.machine_url} />,
          "Classes of agents": classes.join(", ") || "none",
          Made: <Time at={app.created_on} />,
        }}
      />
    </Card>
  );
}

type Version = WireApp["versions"][number];

const TONES: Record<Version["status"], Tone> = { checking: "busy", ready: "good", broken: "bad" };

function Versions({ app, path, reload }: { app: WireApp; path: string; reload: () => void }) {
  const { may } = useAccount();
  return (
    <TableCard
      title="Versions"
      empty={
        <Empty title="Nothing was deployed yet">
          The app has secrets alone. Its first deployment makes version 1.
        </Empty>
      }
      keyOf={({ number }) => String(number)}
      rows={app.versions}
      columns={{
        Version: ({ number }) => (
          <>
            {number} {number === app.serving_version && <Badge tone="busy">serves</Badge>}
          </>
        ),
        State: ({ status, reason }) => (
          <div>
            <State of={status} tones={TONES} />
            {reason && <p class="quiet preline">{reason}</p>}
          </div>
        ),
        Size: ({ bundle_bytes: bytes }) => formatBytes(bytes),
        Deployed: ({ created_on: at }) => <Time at={at} />,
      }}
      actions={({ number, status }) =>
        may("apps.write") &&
        status === "ready" &&
        number !== app.serving_version && (
          <ConfirmButton
            label={`Serve version ${number}`}
            title={`Serve version ${number} of ${app.name}?`}
            text="Agents restart in that version, with their data."
            request={{ method: "POST", path: `${path}/rollback`, json: { version: number } }}
            done={reload}
          />
        )
      }
    />
  );
}

export function SecretsPage() {
  const { app = "" } = useParameters();
  const { restPath, may } = useAccount();
  const path = restPath(`${appPath(app)}/secrets`);
  const secrets = useList<WireApp["secrets"][number]>(path);
  const { reload } = secrets.reading;
  const canWrite = may("apps.write");
  return (
    <Page {...appFrame(app, "/secrets")} request={secrets}>
      <ListCard
        list={secrets}
        label="Secrets"
        noun="secret"
        keyOf={({ name }) => name}
        empty={[
          "There is no secret yet",
          "Code reads them in env, and declared webhooks are checked with them.",
        ]}
        columns={{
          Name: ({ name }) => <code>{name}</code>,
          Put: ({ modified_on: at }) => <Time at={at} />,
        }}
        actions={({ name }) =>
          canWrite && (
            <ConfirmButton
              label="Take away"
              title={`Take ${name} away?`}
              text="The app no longer has it after its next start."
              request={{ method: "DELETE", path: `${path}/${encodeURIComponent(name)}` }}
              done={reload}
            />
          )
        }
      />
      {canWrite && <Put path={path} reload={reload} />}
    </Page>
  );
}

function Put({ path, reload }: { path: string; reload: () => void }) {
  const form = useForm({ name: "", value: "" });
  const put = async () => {
    const { name, value } = form.values;
    await ask({ method: "PUT", path: `${path}/${encodeURIComponent(name)}`, json: { value } });
    form.reset();
    reload();
    return `${name} is put. The app has it from its next start on.`;
  };
  return (
    <FormCard
      title="Put a secret"
      submit="Put"
      onSubmit={put}
      form={form}
      fields={[
        {
          ...{ name: "name", label: "Name", isCode: true, required: true },
          hint: "As in code: letters, digits and _. A name that exists gets the new value",
        },
        {
          ...{ name: "value", label: "Value", type: "password", required: true },
          hint: "It is not shown again, here or elsewhere",
        },
      ]}
    />
  );
}
