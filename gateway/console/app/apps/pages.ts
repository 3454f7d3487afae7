/** Pages of the account's apps: the versions, secrets, log and agents of each app. */
import type { Pages } from "../lib/router.ts";
import { AgentPage } from "./agent-page.tsx";
import { AgentsPage } from "./agents-page.tsx";
import { AppPage, AppsPage, SecretsPage } from "./apps-page.tsx";
import { ExamplePage } from "./example-page.tsx";
import { LogPage } from "./log-page.tsx";

export const pages: Pages = {
  "": AppsPage,
  "-/example": ExamplePage,
  ":app": AppPage,
  ":app/agents": AgentsPage,
  ":app/agents/:className/:agent": AgentPage,
  ":app/log": LogPage,
  ":app/secrets": SecretsPage,
};
