/** The repositories of a namespace, and how much of the account's storage is used. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { formatBytes } from "../lib/format.ts";
import type { PageParameters } from "../lib/pages.ts";
import { queryOf } from "../lib/query.ts";
import { Link, navigate } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireNamespace, WireRepo, WireStored } from "../lib/wire.ts";
import { Badge, Meter, Time } from "../parts/bits.tsx";
import { SelectField, TextField } from "../parts/form.tsx";
import { List } from "../parts/list.tsx";
import { Card, Empty, ErrorNote, Page, Read } from "../parts/page.tsx";

const REFRESH_MS = 10_000;

export function RepositoriesPage({ parameters }: PageParameters) {
  const { restPath, placeOf, may } = useAccount();
  const path = restPath("/artifacts/namespaces?limit=200");
  const namespaces = useRest<WireNamespace[]>(path);
  const { namespace: asked } = parameters;
  const query = queryOf({ namespace: asked });
  return (
    <Page
      title="Repositories"
      lead="Git repositories of this account. Clone, push and fetch with any git."
      request={{ path }}
      actions={
        may("artifacts.write") && (
          <>
            <Link class="button small second" to={placeOf(`repositories/-/import${query}`)}>
              Import
            </Link>
            <Link class="button small" to={placeOf(`repositories/-/new${query}`)}>
              New repository
            </Link>
          </>
        )
      }
    >
      <Read reading={namespaces}>
        {(found) =>
          found.length === 0 ? (
            <>
              <Card>
                <NoRepositories />
              </Card>
              <Stored />
            </>
          ) : (
            <InNamespace
              namespaces={found.map(({ namespace }) => namespace)}
              current={asked ?? found[0]?.namespace ?? ""}
            />
          )
        }
      </Read>
    </Page>
  );
}

function NoRepositories() {
  return (
    <Empty title="There is no repository here yet">
      <p>Make a new one, or import one from another host.</p>
    </Empty>
  );
}

function InNamespace({ namespaces, current }: { namespaces: readonly string[]; current: string }) {
  const { restPath, placeOf } = useAccount();
  const [search, setSearch] = useState("");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const query = queryOf({ limit: "50", sort: "updated_at", search, cursor: cursors.at(-1) });
  const repos = useRest<WireRepo[]>(
    restPath(`/artifacts/namespaces/${encodeURIComponent(current)}/repos${query}`),
    { everyMs: REFRESH_MS },
  );
  const find = (text: string) => {
    setSearch(text);
    setCursors([]);
  };
  const isEmpty = search === "" ? <NoRepositories /> : <Empty title="No name has this in it" />;
  return (
    <>
      <Card>
        <div class="filters">
          <SelectField
            label="Namespace"
            value={current}
            onChange={(name) => navigate(placeOf(`repositories/${encodeURIComponent(name)}`))}
            options={namespaces.map((name) => ({ value: name, label: name }))}
          />
          <TextField label="Find a repository" value={search} onChange={find} />
        </div>
        <List
          reading={repos}
          label="Repositories"
          noun="repository"
          nouns="repositories"
          keyOf={({ id }) => id}
          empty={isEmpty}
          onCursor={(cursor) => setCursors([...cursors, cursor])}
          columns={[
            { name: "Name", cell: (repo) => <NameOf repo={repo} namespace={current} /> },
            { name: "Default branch", cell: ({ default_branch: branch }) => branch },
            {
              name: "Last push",
              cell: ({ last_push_at: at }) => <Time at={at ?? undefined} />,
            },
            { name: "State", cell: (repo) => <RepoState repo={repo} /> },
          ]}
        />
        {cursors.length > 0 && (
          <button
            type="button"
            class="small second"
            onClick={() => setCursors(cursors.slice(0, -1))}
          >
            Newer
          </button>
        )}
      </Card>
      {repos.hasAnswered && <Stored />}
    </>
  );
}

function NameOf({ repo, namespace }: { repo: WireRepo; namespace: string }) {
  const { placeOf } = useAccount();
  const { name, description } = repo;
  const place = `repositories/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return (
    <div>
      <Link to={placeOf(place)}>{name}</Link>
      {description && <div class="quiet">{description}</div>}
    </div>
  );
}

export function RepoState({ repo: { status, read_only: isReadOnly } }: { repo: WireRepo }) {
  if (status === "failed") return <Badge tone="bad">failed</Badge>;
  if (status !== "ready") return <Badge tone="busy">{status}</Badge>;
  return isReadOnly ? <Badge tone="quiet">read only</Badge> : <Badge tone="good">ready</Badge>;
}

function Stored() {
  const { restPath } = useAccount();
  const stored = useRest<WireStored>(restPath("/artifacts/usage"), { everyMs: REFRESH_MS });
  return (
    <Card title="Limits">
      {stored.error && <ErrorNote error={stored.error} retry={stored.reload} />}
      <Meter
        label="Stored by all repositories"
        used={stored.value?.bytes}
        limit={stored.value?.bytes_max}
        format={formatBytes}
      />
      <p class="quiet">
        Each pack and large file counts once. What you delete counts for some hours more.
      </p>
    </Card>
  );
}
