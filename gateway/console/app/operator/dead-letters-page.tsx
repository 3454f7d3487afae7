/** Lists messages that failed at every attempt. An administrator can read, resend or drop each message. */
import { useAccount } from "../lib/account.tsx";
import { counted } from "../lib/format.ts";
import { ask, RestError } from "../lib/rest.ts";
import { useParameters, useSaid } from "../lib/router.ts";
import type { WireDeadLetter, WireWholeDeadLetter } from "../lib/wire.ts";
import { ActButton } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Link, RequestLink } from "../parts/link.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { CodeBlock, Facts, JsonBlock, Time } from "../parts/note.tsx";
import { Card, Page, RestPage } from "../parts/page.tsx";
import { operatorFrame } from "./operator-page.tsx";

const LETTERS = "/installation/dead-letters";
const letterPath = (sequence: string | number) => `${LETTERS}/${encodeURIComponent(sequence)}`;

export function DeadLettersPage() {
  const letters = useList<WireDeadLetter>(LETTERS, { everyMs: 5_000, cursorName: "after" });
  // Initially the message from a letter's page: the result of an action there, after which the page led back to this
  // list.
  const [said, setSaid] = useSaid();
  return (
    <Page {...operatorFrame("operator/dead-letters")}>
      <p class={said ? "note hint-note" : "hidden"} role="status">
        {said}
      </p>
      <ListCard
        list={letters}
        label="Dead letters"
        noun="dead letter"
        keyOf={({ sequence }) => String(sequence)}
        empty={[
          letters.previous ? "There are no more" : "There is no dead letter",
          "Messages that failed at every try are kept here for 30 days.",
        ]}
        columns={{
          Message: ({ sequence, address, message }) => (
            <>
              <Link to={`operator/dead-letters/${sequence}`}>
                #{sequence} {message}
              </Link>
              <code class="step-key">{address}</code>
            </>
          ),
          Error: ({ error }) => <span class="preline">{error}</span>,
          Request: requestOf,
          Failed: ({ buried_on: at }) => <Time at={at} />,
        }}
        actions={({ sequence }) => (
          <LetterActions
            sequence={sequence}
            said={(text) => {
              setSaid(text);
              letters.reading.reload();
            }}
          />
        )}
      />
    </Page>
  );
}

const requestOf = ({ request_id: id }: WireDeadLetter) =>
  id === null ? "–" : <RequestLink id={id} />;

interface ActionsProps {
  sequence: number;
  /** Shows a message on the page instead of in the row: the row disappears together with its letter. */
  said: (text: string) => void;
}

function LetterActions({ sequence, said }: ActionsProps) {
  const path = letterPath(sequence);
  const act = (method: "POST" | "DELETE", below: string, done: string) => async () => {
    try {
      await ask({ method, path: path + below });
      said(`#${sequence} ${done}.`);
    } catch (thrown) {
      if (!(thrown instanceof RestError) || thrown.status !== 404) throw thrown;
      said(`#${sequence} was gone already: somebody else has sent it again or dropped it.`);
    }
  };
  return (
    <>
      <ActButton
        request={act("POST", "/retry", "is sent again")}
        label={`Retry #${sequence}`}
        said=""
        done={() => {}}
      />
      <ConfirmButton
        label={`Drop #${sequence}`}
        title={`Drop #${sequence}?`}
        text="No actor will handle the message. This cannot be undone."
        request={act("DELETE", "", "is dropped")}
        done={() => {}}
      />
    </>
  );
}

const LIST = "operator/dead-letters";

export function DeadLetterPage() {
  const { sequence = "" } = useParameters();
  const { go } = useAccount();
  return (
    <RestPage<WireWholeDeadLetter>
      path={letterPath(sequence)}
      request={null}
      title={`Dead letter #${sequence}`}
      above={["Dead letters", LIST]}
      actions={(letter) => (
        <LetterActions sequence={letter.sequence} said={(text) => go(LIST, text)} />
      )}
    >
      {(letter) => (
        <>
          <Card title="Message">
            <Facts
              of={{
                To: <code>{letter.address}</code>,
                [letter.is_task ? "Task" : "Message"]: <code>{letter.message}</code>,
                Failed: <Time at={letter.buried_on} />,
                After: counted(letter.tries, "try", "tries"),
                "Caused by request": requestOf(letter),
              }}
            />
          </Card>
          <Card title="Error">
            <CodeBlock label="Error" text={letter.error} />
          </Card>
          <Card title="Input">
            <JsonBlock label="Input" value={letter.input} />
          </Card>
        </>
      )}
    </RestPage>
  );
}
