/** The frame that all pages for the installation's operators share. */
import type { ComponentChildren } from "preact";
import { RestPage } from "../parts/page.tsx";

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
  children: (value: T, reload: () => void) => ComponentChildren;
}

export const operatorFrame = (current: OperatorProps<unknown>["current"]) => ({
  title: "Operator",
  lead: "The whole installation, with all its accounts. Only its administrators see this.",
  tabs: { label: "Operator", pages: TABS, current },
});

/**
 * Shows and refreshes the response of a path for administrators. The page offers no curl command, because no token
 * has access to this path.
 */
export function OperatorPage<T>({ current, path, children }: OperatorProps<T>) {
  return (
    <RestPage<T>
      {...operatorFrame(current)}
      path={`/installation/${path}`}
      everyMs={REFRESH_MS}
      request={null}
    >
      {children}
    </RestPage>
  );
}
