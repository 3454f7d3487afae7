/** The settings page of a repository, including its deletion. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, post, resultOf } from "../lib/rest.ts";
import type { CreatedRepo, PrunedRepo, WireRepoDetails } from "../lib/wire.ts";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, FormCard, linesOf, useForm } from "../parts/form.tsx";
import { Time } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
import { RepoPage } from "./repo-page.tsx";
import { repoPlace, useRepo } from "./repo-place.tsx";

interface SettingsProps {
  repo: WireRepoDetails;
}

export function SettingsPage() {
  const { may } = useAccount();
  return (
    <RepoPage current="settings">
      {(repo, reload) =>
        may("artifacts.write") ? (
          <>
            <Settings key={repo.id} repo={repo} reload={reload} />
            <Fork repo={repo} />
            <Destroy repo={repo} />
          </>
        ) : (
          <Card>
            <p>Your role here does not permit changes of repositories.</p>
          </Card>
        )
      }
    </RepoPage>
  );
}

function Settings({ repo, reload }: SettingsProps & { reload: () => void }) {
  const { rest } = useRepo();
  const form = useForm({
    description: repo.description ?? "",
    default_branch: repo.default_branch,
    protected_refs: repo.protected_refs.join("\n"),
    read_only: repo.read_only,
  });
  const save = async () => {
    const { description, protected_refs: refs } = form.values;
    const changed = { description: description || null, protected_refs: linesOf(refs) };
    await ask({ method: "PATCH", path: rest(""), json: { ...form.values, ...changed } });
    reload();
    return "Saved.";
  };
  return (
    <FormCard
      title="Settings"
      submit="Save"
      onSubmit={save}
      form={form}
      fields={[
        { name: "description", label: "Description" },
        { name: "default_branch", label: "Default branch", required: true },
        {
          ...{ name: "protected_refs", label: "Protected refs", rows: 3, isCode: true },
          hint: "One on a line, such as refs/heads/main or refs/heads/release/*. Nobody can delete them or force a push to them. A protected tag cannot move at all.",
        },
        { name: "read_only", label: "Read only", hint: "Every push is refused" },
      ]}
    />
  );
}

function Fork({ repo }: SettingsProps) {
  const { go } = useAccount();
  const place = useRepo();
  const form = useForm({ name: `${repo.name}-fork`, default_branch_only: false });
  const fork = async () => {
    const { name } = await resultOf<CreatedRepo>(post(place.rest("/fork"), form.values));
    go(repoPlace(place.namespace, name));
  };
  return (
    <Card title="Fork">
      <p class="quiet">A new repository of this namespace that begins as this one is now.</p>
      <Form
        submit="Fork"
        onSubmit={fork}
        form={form}
        fields={[
          { name: "name", label: "Name of the fork", required: true },
          { name: "default_branch_only", label: "Only the default branch" },
        ]}
      />
    </Card>
  );
}

function Destroy({ repo }: SettingsProps) {
  const { go } = useAccount();
  const place = useRepo();
  const [prunedAt, setPrunedAt] = useState<string>();
  return (
    <Card title="What cannot be undone">
      <div class="row">
        <p>
          <strong>Prune</strong>
          <br />
          <span class="quiet">
            Drops objects that no branch or tag leads to, such as a secret that was forced away.
          </span>
        </p>
        <ConfirmButton
          label="Prune"
          title="Prune the repository?"
          text="Objects that no branch or tag leads to are dropped soon. They cannot come back."
          request={post(place.rest("/prune"))}
          done={({ runs_at: at }: PrunedRepo) => setPrunedAt(at)}
        />
      </div>
      <p aria-live="polite">
        {prunedAt !== undefined && (
          <>
            The prune starts <Time at={prunedAt} /> or later.
          </>
        )}
      </p>
      <div class="row">
        <p>
          <strong>Delete</strong>
          <br />
          <span class="quiet">The repository, its history and its tokens.</span>
        </p>
        <ConfirmButton
          label="Delete the repository"
          title={`Delete ${repo.name}?`}
          text="Its files, its history and its tokens cannot come back."
          typed={repo.name}
          request={{ method: "DELETE", path: place.rest("") }}
          done={() => go(repoPlace(place.namespace))}
        />
      </div>
    </Card>
  );
}
