/** One app: its addresses and versions, the way back to an earlier one, and its end. */
import { useAccount } from "../lib/account.tsx";
import { formatBytes } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { navigate } from "../lib/router.tsx";
import { type Reading, useRest } from "../lib/use-rest.ts";
import type { WireApp } from "../lib/wire.ts";
import { Badge, Facts, Time, type Tone } from "../parts/bits.tsx";
import { Copyable } from "../parts/copy.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Card, Empty, Page, Read } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { AppTabs } from "./app-tabs.tsx";
import { Serving } from "./apps-page.tsx";

const REFRESH_MS = 5_000;

export function AppPage({ parameters: { app = "" } }: PageParameters) {
  const { restPath, placeOf, may } = useAccount();
  const path = restPath(`/apps/${app}`);
  const reading = useRest<WireApp>(path, { everyMs: REFRESH_MS });
  return (
    <Page title={app} above={{ label: "Apps and agents", to: placeOf("apps") }} request={{ path }}>
      <AppTabs app={app} current="" />
      <Read reading={reading}>
        {(value) => (
          <>
            <Overview app={value} />
            <Versions app={value} path={path} reading={reading} />
            {may("apps.write") && <Delete app={value} path={path} />}
          </>
        )}
      </Read>
    </Page>
  );
}

function Overview({ app }: { app: WireApp }) {
  return (
    <Card title="App">
      <Facts
        rows={[
          ["Serves", <Serving key="serves" version={app.serving_version} />],
          ["For people", <Copyable key="url" label="address" value={app.url} />],
          ["For machines", <Copyable key="machine" label="address" value={app.machine_url} />],
          [
            "Classes of agents",
            app.config?.agents.map(({ class_name: name }) => name).join(", ") || "none",
          ],
          ["Made", <Time key="made" at={app.created_on} />],
        ]}
      />
    </Card>
  );
}

type Version = WireApp["versions"][number];

const TONES: Record<Version["status"], Tone> = { checking: "busy", ready: "good", broken: "bad" };

function Versions({
  app,
  path,
  reading,
}: {
  app: WireApp;
  path: string;
  reading: Reading<WireApp>;
}) {
  const { may } = useAccount();
  const rollBack = (version: number) => async () => {
    await ask({ method: "POST", path: `${path}/rollback`, json: { version } });
    reading.reload();
  };
  return (
    <Card title="Versions">
      {app.versions.length === 0 ? (
        <Empty title="Nothing was deployed yet">
          <p>The app has secrets alone. Its first deployment makes version 1.</p>
        </Empty>
      ) : (
        <Table
          label="Versions"
          keyOf={({ number }) => String(number)}
          rows={app.versions}
          columns={[
            {
              name: "Version",
              cell: ({ number }) => (
                <>
                  {number} {number === app.serving_version && <Badge tone="busy">serves</Badge>}
                </>
              ),
            },
            { name: "State", cell: (version) => <VersionState version={version} /> },
            { name: "Size", cell: ({ bundle_bytes: bytes }) => formatBytes(bytes) },
            { name: "Deployed", cell: ({ created_on: at }) => <Time at={at} /> },
          ]}
          actions={({ number, status }) =>
            may("apps.write") &&
            status === "ready" &&
            number !== app.serving_version && (
              <ConfirmButton
                label={`Serve version ${number}`}
                title={`Serve version ${number} of ${app.name}?`}
                text="Agents restart in that version, with their data."
                onConfirm={rollBack(number)}
              />
            )
          }
        />
      )}
    </Card>
  );
}

function VersionState({ version: { status, reason } }: { version: Version }) {
  return (
    <div>
      <Badge tone={TONES[status]}>{status}</Badge>
      {reason && <p class="quiet preline">{reason}</p>}
    </div>
  );
}

function Delete({ app, path }: { app: WireApp; path: string }) {
  const { placeOf } = useAccount();
  const remove = async () => {
    await ask({ method: "DELETE", path });
    navigate(placeOf("apps"));
  };
  return (
    <Card title="Delete">
      <p class="quiet">
        The app ends with its secrets, its log, and all of its agents and what they keep.
      </p>
      <ConfirmButton
        label="Delete the app"
        title={`Delete ${app.name}?`}
        text="Its agents and everything that they keep go for good. It cannot be undone."
        typed={app.name}
        onConfirm={remove}
      />
    </Card>
  );
}
