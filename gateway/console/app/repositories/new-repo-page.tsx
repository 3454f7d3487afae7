/** Makes an empty repository, and shows how to fill it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { Link, usePlace } from "../lib/router.tsx";
import type { CreatedRepo } from "../lib/wire.ts";
import { CopyButton, SecretOnce } from "../parts/copy.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Page } from "../parts/page.tsx";
import { withToken } from "./clone-box.tsx";

const NAMESPACE = "default";

export function NewRepoPage() {
  const { restPath, placeOf } = useAccount();
  const { query } = usePlace();
  const [namespace, setNamespace] = useState(query.get("namespace") ?? NAMESPACE);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [made, setMade] = useState<CreatedRepo>();
  const request = {
    method: "POST" as const,
    path: restPath(`/artifacts/namespaces/${encodeURIComponent(namespace)}/repos`),
    json: { name, ...(description && { description }) },
  };
  const create = async () => setMade((await ask<CreatedRepo>(request)).result);
  const place = `repositories/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return (
    <Page
      title="New repository"
      above={{ label: "Repositories", to: placeOf("repositories") }}
      lead="An empty repository. Push to it with git, or add files here."
      request={request}
    >
      {made ? (
        <>
          <Card>
            <SecretOnce label="Git token" value={made.token} />
            <p>
              It reads and writes this repository for a day.{" "}
              <Link to={placeOf(place)}>Go to the repository {made.name}</Link>
            </p>
          </Card>
          <FirstPush repo={made} />
        </>
      ) : (
        <Card>
          <Form submit="Make the repository" onSubmit={create}>
            <TextField
              label="Name"
              hint="Letters, digits, dots, dashes and underscores"
              pointer="/name"
              value={name}
              onChange={setName}
              required
              autoFocus
            />
            <TextField
              label="Description"
              pointer="/description"
              value={description}
              onChange={setDescription}
            />
            <TextField
              label="Namespace"
              hint="A group of repositories; a new one is made with its first repository"
              pointer="/namespace"
              value={namespace}
              onChange={setNamespace}
              required
            />
          </Form>
        </Card>
      )}
    </Page>
  );
}

function FirstPush({ repo: { remote, token, default_branch: branch } }: { repo: CreatedRepo }) {
  const text = [
    `git init -b ${branch}`,
    "git add . && git commit -m 'First commit'",
    `git remote add origin "${withToken(remote, token)}"`,
    `git push -u origin ${branch}`,
  ].join("\n");
  return (
    <Card title="Push an existing folder" actions={<CopyButton text={text} />}>
      <pre>{text}</pre>
    </Card>
  );
}
