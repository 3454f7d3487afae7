/** The agents of one app. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgentEntry, WireApp } from "../lib/wire.ts";
import { SelectField, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { agentPlace, webhooksPlace } from "./agent-place.ts";
import { AppTabs } from "./app-tabs.tsx";

const REFRESH_MS = 15_000;

export function AgentsPage({ parameters: { app = "" } }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const found = useRest<WireApp>(restPath(`/apps/${app}`));
  const classes = found.value?.config?.agents.map(({ class_name: name }) => name) ?? [];
  const [page, setPage] = useState(1);
  const [className, setClassName] = useState("");
  const [contains, setContains] = useState("");
  const query = new URLSearchParams({
    page: String(page),
    ...(className && { class_name: className }),
    ...(contains && { contains }),
  });
  const path = restPath(`/apps/${app}/agents?${query}`);
  const agents = useRest<WireAgentEntry[]>(path, { everyMs: REFRESH_MS });
  const from1 = (change: () => void) => {
    setPage(1);
    change();
  };
  const isFiltered = className !== "" || contains !== "";
  return (
    <Page title={app} above={{ label: "Apps and agents", to: placeOf("apps") }} request={{ path }}>
      <AppTabs app={app} current="/agents" />
      <Card>
        <div class="filters">
          <TextField
            label="Name contains"
            type="search"
            value={contains}
            onChange={(text) => from1(() => setContains(text))}
          />
          <SelectField
            label="Class"
            value={className}
            onChange={(name) => from1(() => setClassName(name))}
            options={[
              { value: "", label: "All classes" },
              ...classes.map((name) => ({ value: name, label: name })),
            ]}
          />
        </div>
        <List
          reading={agents}
          label="Agents"
          noun="agent"
          keyOf={(one) => `${one.class_name} ${one.name}`}
          onPage={setPage}
          empty={
            <Empty title={isFiltered ? "No agent fits" : "There is no agent yet"}>
              <p>
                {isFiltered
                  ? "Change the name or the class."
                  : "An agent comes to be when something is first sent to its name."}
              </p>
            </Empty>
          }
          columns={[
            {
              name: "Name",
              cell: (one) => (
                <Link to={placeOf(agentPlace({ app, className: one.class_name, name: one.name }))}>
                  {one.name}
                </Link>
              ),
            },
            { name: "Class", cell: ({ class_name: of }) => <code>{of}</code> },
            {
              name: "Actions",
              isActions: true,
              cell: (one) => (
                <Link
                  class="button small second"
                  to={placeOf(webhooksPlace({ app, className: one.class_name, name: one.name }))}
                >
                  Deliveries
                </Link>
              ),
            },
          ]}
        />
      </Card>
    </Page>
  );
}
