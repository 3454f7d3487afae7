/** The streams of the bus, and the free space on its disk. */
import { formatBytes, formatNumber } from "../lib/format.ts";
import type { WireStorage } from "../lib/wire.ts";
import { Badge, Facts } from "../parts/bits.tsx";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { OperatorPage } from "./operator-page.tsx";

type Stream = WireStorage["streams"][number];

export function StoragePage() {
  return (
    <OperatorPage<WireStorage> current="operator/storage" path="storage">
      {({ disk_free_bytes: free, disk_shortage: shortage, streams }) => (
        <>
          {shortage !== null && (
            <div class="note bad" role="alert">
              <p>{shortage}</p>
              <p>Free room on the disk: until then, the platform accepts no new data.</p>
            </div>
          )}
          <Card title="Disk">
            <Facts
              rows={[["Free", free === null ? "the bus runs elsewhere" : formatBytes(free)]]}
            />
          </Card>
          <Card title="Streams">
            <Table
              label="Streams"
              rows={streams}
              keyOf={({ name }) => name}
              columns={[
                { name: "Stream", cell: ({ name }) => <code>{name}</code> },
                { name: "Messages", cell: ({ messages }) => orDash(messages, formatNumber) },
                { name: "Size", cell: ({ bytes }) => orDash(bytes, formatBytes) },
                {
                  name: "Limit",
                  cell: (stream) => (
                    <>
                      {orDash(stream.bytes_max, formatBytes)}{" "}
                      {isNearlyFull(stream) && <Badge tone="bad">nearly full</Badge>}
                    </>
                  ),
                },
                { name: "Copies", cell: (stream) => <Copies stream={stream} /> },
              ]}
            />
          </Card>
        </>
      )}
    </OperatorPage>
  );
}

const isNearlyFull = ({ bytes, bytes_max: max }: Stream) =>
  bytes !== null && max !== null && bytes > 0.9 * max;

const orDash = (value: number | null, format: (value: number) => string) =>
  value === null ? "–" : format(value);

function Copies({ stream: { copies, copies_behind: behind } }: { stream: Stream }) {
  if (copies === null) return <Badge tone="bad">no leader</Badge>;
  if (behind > 0) return <Badge tone="bad">{`${behind} of ${copies} behind`}</Badge>;
  return <>{copies}</>;
}
