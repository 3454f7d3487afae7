/** Tokens with which git opens one repository. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { ask } from "../lib/rest.ts";
import { useRest } from "../lib/use-rest.ts";
import type { MintedRepoToken, WireRepoDetails, WireRepoToken } from "../lib/wire.ts";
import { Badge, Time } from "../parts/bits.tsx";
import { Copyable, SecretOnce } from "../parts/copy.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, RadioGroup, SelectField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty } from "../parts/page.tsx";
import { withToken } from "./clone-box.tsx";
import { RepoPage } from "./repo-page.tsx";
import { type RepoPlace, useRepo } from "./repo-place.ts";

const REFRESH_MS = 30_000;
const DURATIONS = [
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["31536000", "1 year"],
] as const;

export function RepoTokensPage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const [page, setPage] = useState(1);
  const path = place.rest(`/tokens?per_page=30&page=${page}`);
  return (
    <RepoPage parameters={parameters} current="tokens" request={{ path }}>
      {(repo) => <Tokens place={place} repo={repo} path={path} onPage={setPage} />}
    </RepoPage>
  );
}

interface TokensProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  path: string;
  onPage: (page: number) => void;
}

function Tokens({ place, repo, path, onPage }: TokensProps) {
  const { restPath, may } = useAccount();
  const tokens = useRest<WireRepoToken[]>(path, { everyMs: REFRESH_MS });
  const below = restPath(`/artifacts/namespaces/${encodeURIComponent(place.namespace)}/tokens`);
  const revoke = async (id: string) => {
    await ask({ method: "DELETE", path: `${below}/${id}` });
    tokens.reload();
  };
  return (
    <>
      <Card title="Active tokens">
        <List
          reading={tokens}
          label="Active tokens"
          noun="token"
          keyOf={({ id }) => id}
          onPage={onPage}
          empty={
            <Empty title="There is no active token">
              <p>Git needs one as its password. Make one below.</p>
            </Empty>
          }
          columns={[
            { name: "Id", cell: ({ id }) => <code>{id}</code> },
            {
              name: "Opens",
              cell: ({ scope }) => (
                <Badge tone={scope === "write" ? "busy" : "quiet"}>
                  {scope === "write" ? "read and write" : "read"}
                </Badge>
              ),
            },
            { name: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
            { name: "Last used", cell: ({ last_used_at: at }) => <Time at={at ?? undefined} /> },
            { name: "Expires", cell: ({ expires_at: at }) => <Time at={at} /> },
          ]}
          actions={({ id }) =>
            may("artifacts.write") && (
              <ConfirmButton
                label="Revoke"
                title="Revoke the token?"
                text="Git with this token is refused at once."
                onConfirm={() => revoke(id)}
              />
            )
          }
        />
      </Card>
      {may("artifacts.write") && (
        <NewToken place={place} repo={repo} path={below} reload={tokens.reload} />
      )}
    </>
  );
}

interface NewTokenProps {
  place: RepoPlace;
  repo: WireRepoDetails;
  path: string;
  reload: () => void;
}

function NewToken({ place, repo, path, reload }: NewTokenProps) {
  const [scope, setScope] = useState("read");
  const [ttl, setTtl] = useState("86400");
  const [made, setMade] = useState<MintedRepoToken>();
  const mint = async () => {
    const json = { repo: place.name, scope, ttl: Number(ttl) };
    setMade((await ask<MintedRepoToken>({ method: "POST", path, json })).result);
    reload();
  };
  return (
    <Card title="Make a token">
      {made && (
        <>
          <SecretOnce label="Git token" value={made.plaintext} />
          <p class="quiet">Clone with it:</p>
          <Copyable
            label="command"
            value={`git clone "${withToken(repo.remote, made.plaintext)}"`}
          />
        </>
      )}
      <Form submit="Make the token" onSubmit={mint}>
        <RadioGroup
          label="Opens"
          pointer="/scope"
          value={scope}
          onChange={setScope}
          choices={[
            { value: "read", label: "Read", hint: "Clone and fetch" },
            { value: "write", label: "Read and write", hint: "Push too" },
          ]}
        />
        <SelectField
          label="Expires in"
          pointer="/ttl"
          value={ttl}
          onChange={setTtl}
          options={DURATIONS.map(([value, label]) => ({ value, label }))}
        />
      </Form>
    </Card>
  );
}
