/** Shows hosts with their leases and shards, lanes with their tasks, and streams with the free space of the disk. */
import { counted, formatBytes, formatNumber } from "../lib/format.ts";
import type { WireHosts, WireQueues, WireStorage } from "../lib/wire.ts";
import { Link } from "../parts/link.tsx";
import { TableCard } from "../parts/list.tsx";
import { Alarm, Badge, Empty, Facts, State, Time, type Tone } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
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
            <Alarm title={`No host owns ${counted(unowned.length, "shard")}: ${ranges(unowned)}.`}>
              Another host takes them within seconds. If none does, start one.
            </Alarm>
          )}
          <TableCard
            title="Hosts"
            rows={hosts}
            empty={<Empty title="No host runs actors">Start a process with the role actors.</Empty>}
            columns={{
              Host: ({ id }) => <code>{id}</code>,
              Lease: ({ lease }) => <State of={lease} tones={TONES} />,
              Renewed: ({ renewed_on: at }) => (at === null ? "–" : <Time at={at} />),
              Shards: ({ shards }) =>
                shards.length === 0 ? "none" : `${shards.length}: ${ranges(shards)}`,
            }}
          />
        </>
      )}
    </OperatorPage>
  );
}

/** Formats ascending numbers as ranges: "0–2, 5, 7–9". */
function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}

export function QueuesPage() {
  return (
    <OperatorPage<WireQueues> current="operator/queues" path="queues">
      {({ lanes, mail_waiting: mail, dead_letters: dead }) => (
        <>
          <Card title="Messages">
            <Facts
              of={{
                "Mail on its way": formatNumber(mail),
                "Dead letters":
                  dead === 0 ? (
                    "none"
                  ) : (
                    <Link to="operator/dead-letters">{formatNumber(dead)}</Link>
                  ),
              }}
            />
          </Card>
          <TableCard
            title="Lanes"
            rows={lanes}
            keyOf={({ kind, lane }) => `${kind}.${lane}`}
            columns={{
              Lane: ({ kind, lane, is_full: isFull }) => (
                <>
                  <code>{`${kind}.${lane}`}</code> {isFull && <Badge tone="bad">full</Badge>}
                </>
              ),
              Waiting: ({ waiting }) => formatNumber(waiting),
              Running: ({ running }) => formatNumber(running),
              Oldest: ({ oldest_on: at }) => (at === null ? "–" : <Time at={at} />),
            }}
          />
        </>
      )}
    </OperatorPage>
  );
}

type Stream = WireStorage["streams"][number];

export function StoragePage() {
  return (
    <OperatorPage<WireStorage> current="operator/storage" path="storage">
      {({ disk_free_bytes: free, disk_shortage: shortage, streams }) => (
        <>
          {shortage !== null && (
            <Alarm title={shortage}>
              Free room on the disk: until then, the platform accepts no new data.
            </Alarm>
          )}
          <Card title="Disk">
            <Facts of={{ Free: free === null ? "the bus runs elsewhere" : formatBytes(free) }} />
          </Card>
          <TableCard
            title="Streams"
            rows={streams}
            keyOf={({ name }) => name}
            columns={{
              Stream: ({ name }) => <code>{name}</code>,
              Messages: ({ messages }) => orDash(messages, formatNumber),
              Size: ({ bytes }) => orDash(bytes, formatBytes),
              Limit: (stream) => (
                <>
                  {orDash(stream.bytes_max, formatBytes)}{" "}
                  {isNearlyFull(stream) && <Badge tone="bad">nearly full</Badge>}
                </>
              ),
              Copies: (stream) => <Copies stream={stream} />,
            }}
          />
        </>
      )}
    </OperatorPage>
  );
}

/** A stream that drops its oldest messages is always full, and nothing is wrong with it. */
const isNearlyFull = ({ bytes, bytes_max: max, refuses_when_full: refuses }: Stream) =>
  refuses === true && bytes !== null && max !== null && bytes > 0.9 * max;

const orDash = (value: number | null, format: (value: number) => string) =>
  value === null ? "–" : format(value);

function Copies({ stream: { copies, copies_behind: behind } }: { stream: Stream }) {
  if (copies === null) return <Badge tone="bad">no leader</Badge>;
  if (behind > 0) return <Badge tone="bad">{`${behind} of ${copies} behind`}</Badge>;
  return <>{copies}</>;
}
