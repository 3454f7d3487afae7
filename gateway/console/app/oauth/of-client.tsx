/** What all pages of one OAuth client share: its name, its pages, and the reading of it. */
import type { ComponentChildren } from "preact";
import { useAccount } from "../lib/account.tsx";
import { type Reading, useRest } from "../lib/use-rest.ts";
import type { WireOAuthClient } from "../lib/wire.ts";
import { Page, Read } from "../parts/page.tsx";
import { Tabs } from "../parts/tabs.tsx";

/** A domain is checked every some seconds at first; its state shows soon after. */
const REFRESH_MS = 5_000;

export interface OfClientProps {
  client: WireOAuthClient;
  /** Below /v4. */
  path: string;
  reload: () => void;
}

export type ClientTab = "" | "settings" | "domain" | "try-it" | "people";

const TABS: readonly (readonly [ClientTab, string])[] = [
  ["", "Overview"],
  ["settings", "Settings"],
  ["domain", "Domain and visibility"],
  ["try-it", "Try it"],
  ["people", "People and changes"],
];

export function OfClient({
  id,
  tab,
  children,
}: {
  id: string;
  tab: ClientTab;
  children: (props: OfClientProps) => ComponentChildren;
}) {
  const { restPath, placeOf } = useAccount();
  const path = restPath(`/oauth_clients/${id}`);
  const reading: Reading<WireOAuthClient> = useRest(path, { everyMs: REFRESH_MS });
  const below = (one: ClientTab) => `oauth-clients/${id}${one && `/${one}`}`;
  return (
    <Page
      title={reading.value?.client_name ?? "OAuth client"}
      above={{ label: "OAuth clients", to: placeOf("oauth-clients") }}
      request={{ path }}
    >
      <Tabs
        label="Pages of the client"
        tabs={TABS.map(([one, name]) => [below(one), name] as const)}
        current={below(tab)}
      />
      <Read reading={reading}>
        {(client) => children({ client, path, reload: reading.reload })}
      </Read>
    </Page>
  );
}
