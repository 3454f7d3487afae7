/** Writes one file of a branch as a commit. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask, send } from "../lib/rest.ts";
import { navigate, usePlace } from "../lib/router.tsx";
import { useLoaded } from "../lib/use-loaded.ts";
import type { WireRef, WireRepoDetails } from "../lib/wire.ts";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Read } from "../parts/page.tsx";
import { fileRequest } from "./readme.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, type RepoPlace, shortRef, useRepo } from "./repo-place.ts";

export function EditPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const { path = "" } = parameters;
  const isNew = path === "" || path.endsWith("/");
  return (
    <RepoPage
      parameters={parameters}
      current=""
      title={isNew ? "New file" : `Edit ${path.split("/").at(-1)}`}
    >
      {(repo) => <Edit place={place} repo={repo} path={path} isNew={isNew} />}
    </RepoPage>
  );
}

interface EditProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  path: string;
  isNew: boolean;
}

function Edit({ place, repo, path, isNew }: EditProps) {
  const { query } = usePlace();
  const branch = query.get("ref") ?? `refs/heads/${repo.default_branch}`;
  // Read once: a commit by another person in between is refused, not overwritten.
  const before = useLoaded(`${place.rest("")} ${branch} ${path}`, async (signal) => {
    const refs = await ask<WireRef[]>({ path: place.rest("/refs?limit=1000") }, signal);
    const tip = refs.result.find(({ name }) => name === branch)?.hash ?? null;
    if (isNew || tip === null) return { tip, text: "" };
    return { tip, text: await (await send(fileRequest(place, tip, path), signal)).text() };
  });
  return (
    <Card>
      <Read reading={before}>
        {({ tip, text }) => <Fields {...{ place, path, isNew, branch, tip, before: text }} />}
      </Read>
    </Card>
  );
}

interface FieldsProps extends Omit<EditProps, "repo"> {
  branch: string;
  tip: string | null;
  before: string;
}

function Fields({ place, path, isNew, branch, tip, before }: FieldsProps) {
  const { user } = useAccount();
  const [name, setName] = useState(path);
  const [content, setContent] = useState(before);
  const [message, setMessage] = useState("");
  const fileName = name.split("/").at(-1) ?? "";
  const commit = async () => {
    const author = { name: user.email.split("@")[0] || "person", email: user.email };
    const json = {
      branch: shortRef(branch),
      expected: tip,
      message: message || `${isNew ? "Add" : "Change"} ${fileName}`,
      author,
      changes: [{ path: name, content }],
    };
    await ask({ method: "POST", path: place.rest("/commits"), json });
    navigate(place.page(`file/${encodePath(name)}`, { ref: branch }));
  };
  const cancel = () => history.back();
  return (
    <Form submit={`Commit to ${shortRef(branch)}`} onSubmit={commit} onCancel={cancel}>
      {isNew && (
        <TextField
          label="Path"
          hint="From the root, such as docs/guide.md"
          pointer="/changes/0/path"
          value={name}
          onChange={setName}
          required
          autoFocus
          isCode
        />
      )}
      <TextField
        label="Content"
        pointer="/changes/0/content"
        value={content}
        onChange={setContent}
        rows={18}
        isCode
      />
      <TextField
        label="Message"
        pointer="/message"
        value={message}
        onChange={setMessage}
        placeholder={`${isNew ? "Add" : "Change"} ${fileName}`}
      />
    </Form>
  );
}
