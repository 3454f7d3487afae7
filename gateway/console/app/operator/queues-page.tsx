/** The waiting and running tasks of each lane. */
import { useAccount } from "../lib/account.tsx";
import { formatNumber } from "../lib/format.ts";
import { Link } from "../lib/router.tsx";
import type { WireQueues } from "../lib/wire.ts";
import { Badge, Facts, Time } from "../parts/bits.tsx";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { OperatorPage } from "./operator-page.tsx";

export function QueuesPage() {
  const { placeOf } = useAccount();
  return (
    <OperatorPage<WireQueues> current="operator/queues" path="queues">
      {({ lanes, mail_waiting: mail, dead_letters: dead }) => (
        <>
          <Card title="Messages">
            <Facts
              rows={[
                ["Mail on its way", formatNumber(mail)],
                [
                  "Dead letters",
                  dead === 0 ? (
                    "none"
                  ) : (
                    <Link key="dead" to={placeOf("operator/dead-letters")}>
                      {formatNumber(dead)}
                    </Link>
                  ),
                ],
              ]}
            />
          </Card>
          <Card title="Lanes">
            <Table
              label="Lanes"
              rows={lanes}
              keyOf={({ kind, lane }) => `${kind}.${lane}`}
              columns={[
                {
                  name: "Lane",
                  cell: ({ kind, lane, is_full: isFull }) => (
                    <>
                      <code>
                        {kind}.{lane}
                      </code>{" "}
                      {isFull && <Badge tone="bad">full</Badge>}
                    </>
                  ),
                },
                { name: "Waiting", cell: ({ waiting }) => formatNumber(waiting) },
                { name: "Running", cell: ({ running }) => formatNumber(running) },
                {
                  name: "Oldest",
                  cell: ({ oldest_on: at }) => (at === null ? "–" : <Time at={at} />),
                },
              ]}
            />
          </Card>
        </>
      )}
    </OperatorPage>
  );
}
