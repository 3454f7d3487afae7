/** Hosts of actors, with their leases and shards. */
import { counted } from "../lib/format.ts";
import type { WireHosts } from "../lib/wire.ts";
import { Badge, Time, type Tone } from "../parts/bits.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { OperatorPage } from "./operator-page.tsx";

const TONES: Record<WireHosts["hosts"][number]["lease"], Tone> = {
  held: "good",
  leaving: "busy",
  gone: "bad",
};

export function HostsPage() {
  return (
    <OperatorPage<WireHosts> current="operator" path="hosts">
      {({ hosts, unowned_shards: unowned }) => (
        <>
          {unowned.length > 0 && (
            <div class="note bad" role="alert">
              <p>
                Nobody answers for {counted(unowned.length, "shard")}: {ranges(unowned)}.
              </p>
              <p>Another host takes them within seconds. If none does, start one.</p>
            </div>
          )}
          <Card title="Hosts">
            {hosts.length === 0 ? (
              <Empty title="No host runs actors">
                <p>Start a process with the role actors.</p>
              </Empty>
            ) : (
              <Table
                label="Hosts"
                rows={hosts}
                keyOf={({ id }) => id}
                columns={[
                  { name: "Host", cell: ({ id }) => <code>{id}</code> },
                  {
                    name: "Lease",
                    cell: ({ lease }) => <Badge tone={TONES[lease]}>{lease}</Badge>,
                  },
                  {
                    name: "Renewed",
                    cell: ({ renewed_on: at }) => (at === null ? "–" : <Time at={at} />),
                  },
                  {
                    name: "Shards",
                    cell: ({ shards }) =>
                      shards.length === 0 ? "none" : `${shards.length}: ${ranges(shards)}`,
                  },
                ]}
              />
            )}
          </Card>
        </>
      )}
    </OperatorPage>
  );
}

/** Formats ascending numbers as "0–2, 5, 7–9". */
function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
