/** The pages of the rendering area. */
import { Tabs } from "../parts/tabs.tsx";

const TABS = [
  ["rendering", "Playground"],
  ["rendering/usage", "Usage"],
] as const;

export function RenderingTabs({ current }: { current: (typeof TABS)[number][0] }) {
  return <Tabs label="Rendering" tabs={TABS} current={current} />;
}
