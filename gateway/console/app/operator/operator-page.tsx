/** The frame of the operator's pages. */
import type { ComponentChildren } from "preact";
import { type Reading, useRest } from "../lib/use-rest.ts";
import { Page, Read } from "../parts/page.tsx";
import { Tabs } from "../parts/tabs.tsx";

const REFRESH_MS = 5_000;
const TABS = [
  ["operator", "Hosts"],
  ["operator/queues", "Queues"],
  ["operator/storage", "Storage"],
  ["operator/dead-letters", "Dead letters"],
  ["operator/administrators", "Administrators"],
] as const;

interface OperatorProps<T> {
  current: (typeof TABS)[number][0];
  /** A path below /installation. */
  path: string;
  children: (value: T, reading: Reading<T>) => ComponentChildren;
}

/** Shows the response of a path of the installation, and refreshes it. */
export function OperatorPage<T>({ current, path: below, children }: OperatorProps<T>) {
  const reading = useRest<T>(`/installation/${below}`, { everyMs: REFRESH_MS });
  return (
    <Page
      title="Operator"
      lead="The whole installation, with all its accounts. Only its administrators see this."
    >
      <Tabs label="Operator" tabs={TABS} current={current} />
      <Read reading={reading}>{(value) => children(value, reading)}</Read>
    </Page>
  );
}
