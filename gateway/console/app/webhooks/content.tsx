/** Headers and body of a webhook, as they came or went. */
import { CodeBlock, readable } from "../apps/code-block.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";

interface BodyProps {
  title: string;
  body: string | null;
  encoding: "text" | "base64";
}

export function BodyCard({ title, body, encoding }: BodyProps) {
  return (
    <Card title={title} actions={body && <CopyButton text={body} label="Copy the body" />}>
      {body === null ? (
        <p class="quiet">The body is kept no more.</p>
      ) : body === "" ? (
        <p class="quiet">It has no body.</p>
      ) : (
        <>
          {encoding === "base64" && <p class="quiet">These bytes are no text: shown in base64.</p>}
          <CodeBlock label={title} text={encoding === "text" ? readable(body) : body} />
        </>
      )}
    </Card>
  );
}

export function HeadersCard({ headers }: { headers: readonly { name: string; value: string }[] }) {
  const rows = headers.map((header, index) => ({ ...header, key: String(index) }));
  return (
    <Card title="Headers">
      {rows.length === 0 ? (
        <p class="quiet">It has no headers.</p>
      ) : (
        <div class="compact">
          <Table
            label="Headers"
            keyOf={({ key }) => key}
            rows={rows}
            columns={[
              { name: "Header", cell: ({ name }) => <code>{name}</code> },
              { name: "Value", cell: ({ value }) => <code>{value}</code> },
            ]}
          />
        </div>
      )}
    </Card>
  );
}
