/** Settings of a repository, and what destroys it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { navigate } from "../lib/router.tsx";
import type { CreatedRepo, WireRepoDetails } from "../lib/wire.ts";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Check, Form, TextField } from "../parts/form.tsx";
import { Card } from "../parts/page.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, useRepo } from "./repo-place.ts";

interface SettingsProps {
  place: RepoPlace;
  repo: WireRepoDetails;
}

export function SettingsPage({ parameters }: PageParameters) {
  const { may } = useAccount();
  const place = useRepo(parameters);
  return (
    <RepoPage parameters={parameters} current="settings">
      {(repo, reload) =>
        may("artifacts.write") ? (
          <>
            <Settings key={repo.id} place={place} repo={repo} reload={reload} />
            <Fork place={place} repo={repo} />
            <Destroy place={place} repo={repo} />
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

function Settings({ place, repo, reload }: SettingsProps & { reload: () => void }) {
  const [description, setDescription] = useState(repo.description ?? "");
  const [branch, setBranch] = useState(repo.default_branch);
  const [isReadOnly, setReadOnly] = useState(repo.read_only);
  const [refs, setRefs] = useState(repo.protected_refs.join("\n"));
  const [isSaved, setSaved] = useState(false);
  const save = async () => {
    setSaved(false);
    const json = {
      description: description || null,
      default_branch: branch,
      read_only: isReadOnly,
      protected_refs: refs
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean),
    };
    await ask({ method: "PATCH", path: place.rest(""), json });
    setSaved(true);
    reload();
  };
  return (
    <Card title="Settings">
      <Form submit="Save" onSubmit={save}>
        <TextField
          label="Description"
          pointer="/description"
          value={description}
          onChange={setDescription}
        />
        <TextField
          label="Default branch"
          pointer="/default_branch"
          value={branch}
          onChange={setBranch}
          required
        />
        <TextField
          label="Protected refs"
          hint="One on a line, such as refs/heads/main or refs/heads/release/*. Nobody may delete or force them."
          pointer="/protected_refs"
          value={refs}
          onChange={setRefs}
          rows={3}
          isCode
        />
        <Check
          label="Read only"
          hint="Every push is refused"
          isOn={isReadOnly}
          onChange={setReadOnly}
        />
      </Form>
      <p class="below" aria-live="polite">
        {isSaved && "Saved."}
      </p>
    </Card>
  );
}

function Fork({ place, repo }: SettingsProps) {
  const { placeOf } = useAccount();
  const [name, setName] = useState(`${repo.name}-fork`);
  const [isSmall, setSmall] = useState(false);
  const fork = async () => {
    const json = { name, default_branch_only: isSmall };
    const { result } = await ask<CreatedRepo>({ method: "POST", path: place.rest("/fork"), json });
    const own = `${encodeURIComponent(place.namespace)}/${encodeURIComponent(result.name)}`;
    navigate(placeOf(`repositories/${own}`));
  };
  return (
    <Card title="Fork">
      <p class="quiet">A new repository of this namespace that begins as this one is now.</p>
      <Form submit="Fork" onSubmit={fork}>
        <TextField
          label="Name of the fork"
          pointer="/name"
          value={name}
          onChange={setName}
          required
        />
        <Check label="Only the default branch" isOn={isSmall} onChange={setSmall} />
      </Form>
    </Card>
  );
}

function Destroy({ place, repo }: SettingsProps) {
  const { placeOf } = useAccount();
  const [isPruned, setPruned] = useState(false);
  const prune = async () => {
    await ask({ method: "POST", path: place.rest("/prune") });
    setPruned(true);
  };
  const remove = async () => {
    await ask({ method: "DELETE", path: place.rest("") });
    navigate(placeOf(`repositories/${encodeURIComponent(place.namespace)}`));
  };
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
          onConfirm={prune}
        />
      </div>
      <p aria-live="polite">{isPruned && "The objects are dropped soon."}</p>
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
          onConfirm={remove}
        />
      </div>
    </Card>
  );
}
