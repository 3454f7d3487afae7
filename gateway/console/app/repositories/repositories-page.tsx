/** Lists the repositories of a namespace, and shows the used storage of the account. */
import { useAccount } from "../lib/account.tsx";
import { formatBytes } from "../lib/format.ts";
import { queryOf } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireNamespace, WireRepo, WireStored } from "../lib/wire.ts";
import { type Choice, Fields } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Badge, Empty, ErrorNote, Meter, Time } from "../parts/note.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { repoPlace } from "./repo-place.tsx";

const REFRESH_MS = 10_000;
const NONE = [
  "There is no repository here yet",
  "Make a new one, or import one from another host.",
] as const;

export function RepositoriesPage() {
  const { namespace } = useParameters();
  const { restPath, may } = useAccount();
  const path = restPath("/artifacts/namespaces?limit=200");
  const namespaces = useRest<WireNamespace[]>(path);
  const query = queryOf({ namespace });
  return (
    <Page
      title="Repositories"
      lead="Git repositories of this account. Clone, push and fetch with any git."
      request={{ path }}
      actions={
        may("artifacts.write") && (
          <>
            <ButtonLink to={`repositories/-/import${query}`}>Import</ButtonLink>
            <ButtonLink isMain to={`repositories/-/new${query}`}>
              New repository
            </ButtonLink>
          </>
        )
      }
    >
      <Read reading={namespaces}>
        {(found) =>
          found.length === 0 ? (
            <>
              <Card>
                <Empty title={NONE[0]}>{NONE[1]}</Empty>
              </Card>
              <Stored />
            </>
          ) : (
            <InNamespace
              key={namespace}
              namespaces={found.map((one) => one.namespace)}
              current={namespace ?? found[0]?.namespace ?? ""}
            />
          )
        }
      </Read>
    </Page>
  );
}

function InNamespace({ namespaces, current }: { namespaces: readonly string[]; current: string }) {
  const { restPath, go } = useAccount();
  const base = restPath(`/artifacts/namespaces/${encodeURIComponent(current)}/repos`);
  const repos = useList<WireRepo>(base, {
    everyMs: REFRESH_MS,
    query: { limit: "50", sort: "updated_at" },
    filters: { search: "" },
  });
  return (
    <>
      <ListCard
        list={repos}
        label="Repositories"
        noun="repository"
        nouns="repositories"
        filters={[{ name: "search", label: "Find a repository" }]}
        beside={
          <Fields
            form={{ values: { current }, change: ({ current: to = "" }) => go(repoPlace(to)) }}
            fields={[
              {
                ...{ name: "current", label: "Namespace" },
                options: namespaces.map((name): Choice => [name, name]),
              },
            ]}
          />
        }
        empty={NONE}
        none={["No name has this in it"]}
        columns={{
          Name: ({ name, description }) => (
            <div>
              <Link to={repoPlace(current, name)}>{name}</Link>
              {description && <div class="quiet">{description}</div>}
            </div>
          ),
          "Default branch": ({ default_branch: branch }) => branch,
          "Last push": ({ last_push_at: at }) => <Time at={at} />,
          State: (repo) => <RepoState repo={repo} />,
        }}
      />
      {repos.reading.hasAnswered && <Stored />}
    </>
  );
}

function RepoState({ repo: { status, read_only: isReadOnly } }: { repo: WireRepo }) {
  if (status === "failed") return <Badge tone="bad">failed</Badge>;
  if (status !== "ready") return <Badge tone="busy">{status}</Badge>;
  return isReadOnly ? <Badge tone="quiet">read only</Badge> : <Badge tone="good">ready</Badge>;
}

function Stored() {
  const { restPath } = useAccount();
  const stored = useRest<WireStored>(restPath("/artifacts/usage"), REFRESH_MS);
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
