/** The pages of one app. */
import { Tabs } from "../parts/tabs.tsx";

type Tab = "" | "/agents" | "/log" | "/secrets";

const TABS: readonly (readonly [Tab, string])[] = [
  ["", "Versions"],
  ["/agents", "Agents"],
  ["/log", "Log"],
  ["/secrets", "Secrets"],
];

export function AppTabs({ app, current }: { app: string; current: Tab }) {
  const base = `apps/${app}`;
  return (
    <Tabs
      label={`App ${app}`}
      tabs={TABS.map(([tab, name]) => [base + tab, name] as const)}
      current={base + current}
    />
  );
}
