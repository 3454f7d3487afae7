/** The form for a new repository: an empty one, or an import of a public repository from another host. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, post, resultOf } from "../lib/rest.ts";
import { usePlace } from "../lib/router.ts";
import type { CreatedRepo } from "../lib/wire.ts";
import { CopyButton, SecretOnce } from "../parts/button.tsx";
import { FormCard, useForm } from "../parts/form.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { Card, Page } from "../parts/page.tsx";
import { authorOf } from "./edit-page.tsx";
import { repoPlace, useRepo } from "./repo-place.tsx";
import { withToken } from "./repo-tokens-page.tsx";

export function NewRepoPage() {
  const { restPath, user } = useAccount();
  const { query } = usePlace();
  const form = useForm({
    ...{ name: "", description: "", hasReadme: false },
    namespace: query.get("namespace") ?? "default",
  });
  const [made, setMade] = useState<CreatedRepo>();
  const { namespace, name, description, hasReadme } = form.values;
  const place = useRepo({ namespace, name });
  const path = restPath(`/artifacts/namespaces/${encodeURIComponent(namespace)}/repos`);
  const request = post(path, { name, ...(description && { description }) });
  const create = async () => {
    const repo = await resultOf<CreatedRepo>(request);
    if (hasReadme) {
      const content = [`# ${name}`, description].filter(Boolean).join("\n\n");
      const changes = [{ path: "README.md", content: `${content}\n` }];
      const first = { branch: repo.default_branch, expected: null, author: authorOf(user) };
      await ask(post(place.rest("/commits"), { ...first, message: "Add README.md", changes }));
    }
    setMade(repo);
  };
  return (
    <Page
      title="New repository"
      above={["Repositories", "repositories"]}
      lead="Push to it with git, or add files here."
      request={request}
    >
      {made ? (
        <>
          <Card>
            <SecretOnce label="Git token" value={made.token} />
            <p>Git takes it as the password of this repository for a day, to read and to write.</p>
            <ButtonLink isMain to={repoPlace(namespace, made.name)}>
              Go to the repository
            </ButtonLink>
          </Card>
          {!hasReadme && <FirstPush repo={made} />}
        </>
      ) : (
        <FormCard
          submit="Make the repository"
          onSubmit={create}
          form={form}
          fields={[
            {
              ...{ name: "name", label: "Name", required: true, autoFocus: true },
              hint: "Letters, digits, dots, dashes and underscores",
            },
            { name: "description", label: "Description" },
            {
              ...{ name: "namespace", label: "Namespace", required: true },
              hint: "A group of repositories; a new one is made with its first repository",
            },
            {
              ...{ name: "hasReadme", label: "Begin with a README" },
              hint: "Without it the repository is empty, and takes the history of a folder that you push",
            },
          ]}
        />
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

export function ImportPage() {
  const { go } = useAccount();
  const { query } = usePlace();
  const namespace = query.get("namespace") ?? "default";
  const form = useForm({ url: "", name: "", namespace, branch: "", depth: "" });
  const [isNamed, setNamed] = useState(false);
  const { url, branch, depth } = form.values;
  // Until the person types a name, the name is derived from the address to import.
  const values = isNamed ? form.values : { ...form.values, name: nameOf(url) };
  const change = (changed: Partial<typeof values>) => {
    form.change(changed);
    if (changed.name !== undefined) setNamed(true);
  };
  const json = { url, ...(branch && { branch }), ...(depth && { depth: Number(depth) }) };
  const request = post(useRepo(values).rest("/import"), json);
  const start = async () => {
    await ask(request);
    go(repoPlace(values.namespace, values.name));
  };
  return (
    <Page
      title="Import a repository"
      above={["Repositories", "repositories"]}
      lead="Copies a public repository from another host, with its branches and tags."
      request={request}
    >
      <FormCard
        submit="Import"
        onSubmit={start}
        form={{ values, change }}
        fields={[
          {
            ...{ name: "url", label: "Address", required: true, autoFocus: true },
            hint: "An https address that git can clone without a password",
            placeholder: "https://example.com/owner/repository.git",
          },
          { name: "name", label: "Name", required: true },
          { name: "namespace", label: "Namespace", required: true },
          {
            ...{ name: "branch", label: "Branch" },
            hint: "Only this branch; empty: all branches and tags",
          },
          {
            ...{ name: "depth", label: "Depth" },
            hint: "Only so many of the latest commits; empty: the whole history",
          },
        ]}
      />
    </Page>
  );
}

/** Returns the last part of the address, as `git clone` names a folder. */
const nameOf = (url: string) =>
  (url.replace(/\/+$/, "").split("/").at(-1) ?? "")
    .replace(/\.git$/, "")
    .replaceAll(/[^\w.-]/g, "");
