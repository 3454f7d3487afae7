/** One dead letter with its input. */
import { CodeBlock } from "../apps/code-block.tsx";
import { useAccount } from "../lib/account.tsx";
import { counted } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { navigate } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireWholeDeadLetter } from "../lib/wire.ts";
import { Facts, Time } from "../parts/bits.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { LetterActions, requestOf } from "./dead-letters-page.tsx";

export function DeadLetterPage({ parameters: { sequence = "" } }: PageParameters) {
  const { placeOf } = useAccount();
  const path = `/installation/dead-letters/${sequence}`;
  const reading = useRest<WireWholeDeadLetter>(path);
  const list = placeOf("operator/dead-letters");
  return (
    <Page
      title={`Dead letter #${sequence}`}
      above={{ label: "Dead letters", to: list }}
      actions={
        reading.value && (
          <LetterActions sequence={reading.value.sequence} done={() => navigate(list)} />
        )
      }
    >
      <Read reading={reading}>
        {(letter) => (
          <>
            <Card title="Message">
              <Facts
                rows={[
                  ["To", <code key="to">{letter.address}</code>],
                  [letter.is_task ? "Task" : "Message", <code key="m">{letter.message}</code>],
                  ["Failed", <Time key="failed" at={letter.buried_on} />],
                  ["After", counted(letter.tries, "try", "tries")],
                  ["Caused by request", requestOf(letter)],
                ]}
              />
            </Card>
            <Card title="Error">
              <CodeBlock label="Error" text={letter.error} />
            </Card>
            <Card title="Input">
              <CodeBlock label="Input" text={JSON.stringify(letter.input, null, 2)} />
            </Card>
          </>
        )}
      </Read>
    </Page>
  );
}
