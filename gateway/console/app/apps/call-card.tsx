/** Calls a method of an agent. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, RestError } from "../lib/rest.ts";
import { CopyAsCurl } from "../parts/copy.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card } from "../parts/page.tsx";
import { type AgentPlace, agentPath } from "./agent-place.ts";
import { CodeBlock } from "./code-block.tsx";

export function CallCard({ place }: { place: AgentPlace }) {
  const { restPath } = useAccount();
  const [method, setMethod] = useState("");
  const [text, setText] = useState("[]");
  const [result, setResult] = useState<string>();
  const requestOf = (args: unknown) => ({
    method: "POST" as const,
    path: restPath(`${agentPath(place)}/call`),
    json: { method, arguments: args },
  });
  const call = async () => {
    setResult(undefined);
    const args = parse(text);
    if (!Array.isArray(args)) {
      const message = 'Expected a list in JSON, such as [1, "two"]';
      throw new RestError(400, [{ message, source: { pointer: "/arguments" } }]);
    }
    const { result: answer } = await ask<{ result: unknown }>(requestOf(args));
    setResult(JSON.stringify(answer.result, null, 2));
  };
  return (
    <Card title="Call a method" actions={<CopyAsCurl request={requestOf(parse(text) ?? [])} />}>
      <Form submit="Call" onSubmit={call}>
        <TextField
          label="Method"
          hint="A public method of the class"
          pointer="/method"
          value={method}
          onChange={setMethod}
          isCode
          required
        />
        <TextField
          label="Arguments"
          hint="A list in JSON"
          pointer="/arguments"
          rows={2}
          value={text}
          onChange={setText}
          isCode
        />
      </Form>
      {result !== undefined && (
        <div class="rows">
          <CodeBlock label="Result" text={result} />
        </div>
      )}
    </Card>
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
