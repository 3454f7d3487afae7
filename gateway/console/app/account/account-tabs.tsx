/** The pages of the account area. */
import { Tabs } from "../parts/tabs.tsx";

const TABS = [
  ["account", "API tokens"],
  ["account/members", "Members"],
  ["account/sessions", "Sessions"],
] as const;

export function AccountTabs({ current }: { current: (typeof TABS)[number][0] }) {
  return <Tabs label="Account" tabs={TABS} current={current} />;
}
