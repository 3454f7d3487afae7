/** The page to change one file of a branch. Saving creates a commit. */
import { useAccount } from "../lib/account.tsx";
import { ask, post, resultOf, send } from "../lib/rest.ts";
import { useLoaded } from "../lib/use-rest.ts";
import type { WireRef, WireRepoDetails, WireUser } from "../lib/wire.ts";
import { Form, useForm } from "../parts/form.tsx";
import { Card, Read } from "../parts/page.tsx";
import { filePath } from "./document.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, shortRef, useRepo } from "./repo-place.tsx";

export function EditPage() {
  const { path } = useRepo();
  return (
    <RepoPage current="" title={isNew(path) ? "New file" : `Edit ${path.split("/").at(-1)}`}>
      {(repo) => <Edit repo={repo} />}
    </RepoPage>
  );
}

/** The path of a new file is that of its directory, which ends with a slash. */
const isNew = (path: string) => path === "" || path.endsWith("/");

function Edit({ repo }: { repo: WireRepoDetails }) {
  const place = useRepo();
  const { path, reference: branch = `refs/heads/${repo.default_branch}` } = place;
  // Reads the branch only one time. If another person commits meanwhile, the platform then refuses this commit
  // instead of overwriting the other.
  const before = useLoaded(`${place.rest("")} ${branch} ${path}`, async (signal) => {
    const refs = await resultOf<WireRef[]>({ path: place.rest("/refs?limit=1000") }, signal);
    const tip = refs.find(({ name }) => name === branch)?.hash ?? null;
    if (isNew(path) || tip === null) return { tip, text: "" };
    const file = await send({ path: filePath(place, path, tip) }, signal);
    return { tip, text: await file.text() };
  });
  return (
    <Card>
      <Read reading={before}>
        {({ tip, text }) => <EditForm {...{ branch, tip, before: text }} />}
      </Read>
    </Card>
  );
}

interface FormProps {
  branch: string;
  tip: string | null;
  before: string;
}

function EditForm({ branch, tip, before }: FormProps) {
  const { user, go } = useAccount();
  const { path, rest, page } = useRepo();
  const form = useForm({ path, content: before, message: "" });
  const { path: name, content, message } = form.values;
  const placeholder = `${isNew(path) ? "Add" : "Change"} ${name.split("/").at(-1) ?? ""}`;
  const save = async () => {
    const commit = post(rest("/commits"), {
      branch: shortRef(branch),
      expected: tip,
      message: message || placeholder,
      author: authorOf(user),
      changes: [{ path: name, content }],
    });
    await ask(commit);
    go(page(`file/${encodePath(name)}`, { ref: branch }));
  };
  return (
    <Form
      submit={`Commit to ${shortRef(branch)}`}
      onSubmit={save}
      onCancel={() => history.back()}
      form={form}
      fields={[
        isNew(path) && {
          ...{ name: "path", label: "Path", pointer: "/changes/0/path", isCode: true },
          ...{ hint: "From the root, such as docs/guide.md", required: true, autoFocus: true },
        },
        {
          ...{ name: "content", label: "Content", pointer: "/changes/0/content" },
          ...{ rows: 18, isCode: true },
        },
        { name: "message", label: "Message", placeholder },
      ]}
    />
  );
}

/** The author of commits that a person makes here. */
export const authorOf = ({ email }: WireUser) => ({
  ...{ name: email.split("@")[0] || "person", email },
});
