/** The page of the tokens for Git access to one repository, with example commands. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { post, resultOf } from "../lib/rest.ts";
import type { MintedRepoToken, WireRepoDetails, WireRepoToken } from "../lib/wire.ts";
import { Button, Copyable, SecretOnce, useAct } from "../parts/button.tsx";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, useForm } from "../parts/form.tsx";
import { Link } from "../parts/link.tsx";
import { ListCard, useList } from "../parts/list.tsx";
import { Badge, ErrorNote, Time } from "../parts/note.tsx";
import { Card } from "../parts/page.tsx";
import { RepoPage } from "./repo-page.tsx";
import { useRepo } from "./repo-place.tsx";

const DURATIONS = [
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["31536000", "1 year"],
] as const;

export function RepoTokensPage() {
  const { may } = useAccount();
  const place = useRepo();
  const tokens = useList<WireRepoToken>(place.rest("/tokens"), {
    everyMs: 30_000,
    query: { per_page: "30" },
  });
  const { reload } = tokens.reading;
  const canWrite = may("artifacts.write");
  return (
    <RepoPage current="tokens" request={tokens}>
      {(repo) => (
        <>
          <ListCard
            list={tokens}
            title="Active tokens"
            label="Active tokens"
            noun="token"
            empty={["There is no active token", "Git needs one as its password. Make one below."]}
            columns={{
              Id: ({ id }) => <code>{id}</code>,
              Opens: ({ scope }) => (
                <Badge tone={scope === "write" ? "busy" : "quiet"}>
                  {scope === "write" ? "read and write" : "read"}
                </Badge>
              ),
              Made: ({ created_at: at }) => <Time at={at} />,
              "Last used": ({ last_used_at: at }) => <Time at={at} />,
              Expires: ({ expires_at: at }) => <Time at={at} />,
            }}
            actions={({ id }) =>
              canWrite && (
                <ConfirmButton
                  label="Revoke"
                  title="Revoke the token?"
                  text="Git with this token is refused at once."
                  request={{ method: "DELETE", path: `${place.tokens}/${encodeURIComponent(id)}` }}
                  done={reload}
                />
              )
            }
          />
          {canWrite && <NewToken repo={repo} reload={reload} />}
        </>
      )}
    </RepoPage>
  );
}

function NewToken({ repo, reload }: { repo: WireRepoDetails; reload: () => void }) {
  const place = useRepo();
  const form = useForm({ scope: "read", ttl: "86400" });
  const [made, setMade] = useState<MintedRepoToken>();
  const mint = async () => {
    const { scope, ttl } = form.values;
    const asked = { repo: place.name, scope, ttl: Number(ttl) };
    setMade(await resultOf<MintedRepoToken>(post(place.tokens, asked)));
    reload();
  };
  return (
    <Card title="Make a token">
      {made && (
        <>
          <SecretOnce label="Git token" value={made.plaintext} />
          <p class="quiet">Clone with it:</p>
          <Copyable value={cloneWith(repo.remote, made.plaintext)} />
        </>
      )}
      <Form
        submit="Make the token"
        onSubmit={mint}
        form={form}
        fields={[
          {
            ...{ name: "scope", label: "Opens" },
            choices: [
              ["read", "Read", "Clone and fetch"],
              ["write", "Read and write", "Push too"],
            ],
          },
          { name: "ttl", label: "Expires in", options: DURATIONS },
        ]}
      />
    </Card>
  );
}

const TOKEN_TTL_S = 3_600;

/**
 * Returns a clone command with the token as the password in the URL. The token is encoded, because it contains
 * characters that have a meaning in URLs.
 */
const cloneWith = (remote: string, token: string) => `git clone "${withToken(remote, token)}"`;

export const withToken = (remote: string, token: string) =>
  remote.replace(/^(https?:\/\/)/, `$1x:${encodeURIComponent(token)}@`);

export function CloneBox({ repo }: { repo: WireRepoDetails }) {
  const { may } = useAccount();
  const place = useRepo();
  const [token, setToken] = useState<string>();
  const { act, isBusy, error } = useAct(async () => {
    const asked = { repo: place.name, scope: "read", ttl: TOKEN_TTL_S };
    setToken((await resultOf<MintedRepoToken>(post(place.tokens, asked))).plaintext);
  });
  return (
    <Card title="Clone">
      <Copyable value={repo.remote} />
      {token === undefined ? (
        <p class="quiet below">
          Git asks for a password: a token of this repository.{" "}
          <Link to={place.page("tokens")}>Tokens</Link>
        </p>
      ) : (
        <div class="below">
          <p class="quiet">Reads this repository for an hour. It is not shown again.</p>
          <Copyable value={cloneWith(repo.remote, token)} />
        </div>
      )}
      {error && <ErrorNote error={error} />}
      {token === undefined && may("artifacts.write") && (
        <Button onClick={act} isBusy={isBusy}>
          Command with a token
        </Button>
      )}
    </Card>
  );
}
