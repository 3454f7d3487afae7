/** Makes a repository of a public one elsewhere. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { navigate, usePlace } from "../lib/router.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Page } from "../parts/page.tsx";

export function ImportPage() {
  const { restPath, placeOf } = useAccount();
  const { query } = usePlace();
  const [url, setUrl] = useState("");
  const [namespace, setNamespace] = useState(query.get("namespace") ?? "default");
  const [typed, setName] = useState<string>();
  const [branch, setBranch] = useState("");
  const [depth, setDepth] = useState("");
  const name = typed ?? nameOf(url);
  const own = `${encodeURIComponent(namespace)}/repos/${encodeURIComponent(name)}`;
  const request = {
    method: "POST" as const,
    path: restPath(`/artifacts/namespaces/${own}/import`),
    json: { url, ...(branch && { branch }), ...(depth && { depth: Number(depth) }) },
  };
  const start = async () => {
    await ask(request);
    navigate(placeOf(`repositories/${own.replace("/repos/", "/")}`));
  };
  return (
    <Page
      title="Import a repository"
      above={{ label: "Repositories", to: placeOf("repositories") }}
      lead="Copies a public repository from another host, with its branches and tags."
      request={request}
    >
      <Card>
        <Form submit="Import" onSubmit={start}>
          <TextField
            label="Address"
            hint="An https address that git can clone without a password"
            pointer="/url"
            value={url}
            onChange={setUrl}
            placeholder="https://example.com/owner/repository.git"
            required
            autoFocus
          />
          <TextField label="Name" pointer="/name" value={name} onChange={setName} required />
          <TextField
            label="Namespace"
            pointer="/namespace"
            value={namespace}
            onChange={setNamespace}
            required
          />
          <TextField
            label="Branch"
            hint="Only this branch; empty: all branches and tags"
            pointer="/branch"
            value={branch}
            onChange={setBranch}
          />
          <TextField
            label="Depth"
            hint="Only so many of the latest commits; empty: the whole history"
            pointer="/depth"
            value={depth}
            onChange={setDepth}
          />
        </Form>
      </Card>
    </Page>
  );
}

/** The last part of the address, as git names a clone. */
const nameOf = (url: string) =>
  (url.replace(/\/+$/, "").split("/").at(-1) ?? "")
    .replace(/\.git$/, "")
    .replaceAll(/[^\w.-]/g, "");
