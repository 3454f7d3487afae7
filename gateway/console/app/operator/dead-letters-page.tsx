/** Messages that failed at every try. An administrator can send each again or drop it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import type { WireDeadLetter } from "../lib/wire.ts";
import { ActButton } from "../parts/act-button.tsx";
import { Time } from "../parts/bits.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, RequestLink } from "../parts/page.tsx";
import { OperatorPage } from "./operator-page.tsx";

export function DeadLettersPage() {
  const { placeOf } = useAccount();
  const [after, setAfter] = useState("0");
  return (
    <OperatorPage<WireDeadLetter[]>
      current="operator/dead-letters"
      path={`dead-letters?after=${after}`}
    >
      {(_letters, reading) => (
        <Card>
          <List
            reading={reading}
            label="Dead letters"
            noun="dead letter"
            keyOf={({ sequence }) => String(sequence)}
            onCursor={setAfter}
            cursorLabel="Next"
            empty={
              <Empty title={after === "0" ? "There is no dead letter" : "There are no more"}>
                <p>Messages that failed at every try are kept here for 30 days.</p>
                {after !== "0" && (
                  <button type="button" class="small second" onClick={() => setAfter("0")}>
                    Back to the first
                  </button>
                )}
              </Empty>
            }
            columns={[
              {
                name: "Message",
                cell: ({ sequence, address, message }) => (
                  <>
                    <Link to={placeOf(`operator/dead-letters/${sequence}`)}>
                      #{sequence} {message}
                    </Link>
                    <code class="step-key">{address}</code>
                  </>
                ),
              },
              { name: "Error", cell: ({ error }) => <span class="preline">{error}</span> },
              { name: "Request", cell: requestOf },
              { name: "Failed", cell: ({ buried_on: at }) => <Time at={at} /> },
            ]}
            actions={({ sequence }) => <LetterActions sequence={sequence} done={reading.reload} />}
          />
        </Card>
      )}
    </OperatorPage>
  );
}

export const requestOf = ({ request_id: id }: WireDeadLetter) =>
  id === null ? "–" : <RequestLink id={id} />;

export function LetterActions({ sequence, done }: { sequence: number; done: () => void }) {
  const path = `/installation/dead-letters/${sequence}`;
  const drop = async () => {
    await ask({ method: "DELETE", path });
    done();
  };
  return (
    <>
      <ActButton
        request={{ method: "POST", path: `${path}/retry` }}
        label={`Retry #${sequence}`}
        said="Sent again"
        done={done}
      />
      <ConfirmButton
        label={`Drop #${sequence}`}
        title={`Drop #${sequence}?`}
        text="No actor will handle the message. This cannot be undone."
        onConfirm={drop}
      />
    </>
  );
}
