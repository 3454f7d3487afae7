/** The agents of one app. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireApp } from "../lib/wire.ts";
import { SelectField, TextField } from "../parts/form.tsx";
import { Card, Empty, Page } from "../parts/page.tsx";
import { AgentsList } from "./agents-list.tsx";
import { AppTabs } from "./app-tabs.tsx";

export function AgentsPage({ parameters: { app = "" } }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const found = useRest<WireApp>(restPath(`/apps/${app}`));
  const classes = found.value?.config?.agents.map(({ class_name: name }) => name) ?? [];
  const [className, setClassName] = useState("");
  const [contains, setContains] = useState("");
  const path = restPath(`/apps/${app}/agents${queryOf({ class_name: className, contains })}`);
  const isFiltered = className !== "" || contains !== "";
  return (
    <Page title={app} above={{ label: "Apps and agents", to: placeOf("apps") }} request={{ path }}>
      <AppTabs app={app} current="/agents" />
      <Card>
        <div class="filters">
          <TextField label="Name contains" type="search" value={contains} onChange={setContains} />
          <SelectField
            label="Class"
            value={className}
            onChange={setClassName}
            options={[
              { value: "", label: "All classes" },
              ...classes.map((name) => ({ value: name, label: name })),
            ]}
          />
        </div>
        <AgentsList
          key={`${className} ${contains}`}
          {...{ app, className, contains }}
          empty={
            <Empty title={isFiltered ? "No agent fits" : "There is no agent yet"}>
              <p>
                {isFiltered
                  ? "Change the name or the class."
                  : "The first message to a name creates its agent."}
              </p>
            </Empty>
          }
        />
      </Card>
    </Page>
  );
}
