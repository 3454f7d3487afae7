/** The page to change one file of a branch. Saving creates a commit. */
import { useAccount } from "../lib/account.tsx";
import { ask, resultOf, send } from "../lib/rest.ts";
import { type PageParameters, usePlace } from "../lib/router.ts";
import { useLoaded } from "../lib/use-rest.ts";
import type { WireRef, WireRepoDetails, WireUser } from "../lib/wire.ts";
import { Form, useForm } from "../parts/form.tsx";
import { Card, Read } from "../parts/page.tsx";
import { fileRequest } from "./document.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, type RepoPlace, shortRef, useRepo } from "./repo-place.tsx";

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
  // Reads the branch only one time. If another person commits meanwhile, the platform then refuses this commit
  // instead of overwriting the other.
  const before = useLoaded(`${place.rest("")} ${branch} ${path}`, async (signal) => {
    const refs = await resultOf<WireRef[]>({ path: place.rest("/refs?limit=1000") }, signal);
    const tip = refs.find(({ name }) => name === branch)?.hash ?? null;
    if (isNew || tip === null) return { tip, text: "" };
    return { tip, text: await (await send(fileRequest(place, tip, path), signal)).text() };
  });
  return (
    <Card>
      <Read reading={before}>
        {({ tip, text }) => <EditForm {...{ place, path, isNew, branch, tip, before: text }} />}
      </Read>
    </Card>
  );
}

interface FieldsProps extends Omit<EditProps, "repo"> {
  branch: string;
  tip: string | null;
  before: string;
}

function EditForm({ place, path, isNew, branch, tip, before }: FieldsProps) {
  const { user, go } = useAccount();
  const form = useForm({ path, content: before, message: "" });
  const { path: name, content, message } = form.values;
  const placeholder = `${isNew ? "Add" : "Change"} ${name.split("/").at(-1) ?? ""}`;
  const commit = async () => {
    const json = {
      branch: shortRef(branch),
      expected: tip,
      message: message || placeholder,
      author: authorOf(user),
      changes: [{ path: name, content }],
    };
    await ask({ method: "POST", path: place.rest("/commits"), json });
    go(place.page(`file/${encodePath(name)}`, { ref: branch }));
  };
  return (
    <Form
      submit={`Commit to ${shortRef(branch)}`}
      onSubmit={commit}
      onCancel={() => history.back()}
      form={form}
      fields={[
        isNew && {
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
