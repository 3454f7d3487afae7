/** The address for git, and a command with a token that is made for it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, RestError } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import type { MintedRepoToken, WireRepoDetails } from "../lib/wire.ts";
import { Copyable } from "../parts/copy.tsx";
import { Card, ErrorNote } from "../parts/page.tsx";
import type { RepoPlace } from "./repo-place.ts";

const TOKEN_TTL_S = 3_600;

/** Returns the address with the token as its password. A token has signs that addresses give another meaning. */
export function withToken(remote: string, token: string): string {
  return remote.replace(/^(https?:\/\/)/, `$1x:${encodeURIComponent(token)}@`);
}

export function CloneBox({ place, repo }: { place: RepoPlace; repo: WireRepoDetails }) {
  const { restPath, may } = useAccount();
  const [token, setToken] = useState<string>();
  const [error, setError] = useState<RestError>();
  const mint = async () => {
    const path = restPath(`/artifacts/namespaces/${encodeURIComponent(place.namespace)}/tokens`);
    const json = { repo: place.name, scope: "read", ttl: TOKEN_TTL_S };
    try {
      const { result } = await ask<MintedRepoToken>({ method: "POST", path, json });
      setToken(result.plaintext);
    } catch (thrown) {
      if (thrown instanceof RestError) setError(thrown);
      else throw thrown;
    }
  };
  return (
    <Card title="Clone">
      <Copyable label="address" value={repo.remote} />
      {token === undefined ? (
        <p class="quiet below">
          Git asks for a password: a token of this repository.{" "}
          <Link to={place.page("tokens")}>Tokens</Link>
        </p>
      ) : (
        <div class="below">
          <p class="quiet">Reads this repository for an hour. It is not shown again.</p>
          <Copyable label="command" value={`git clone "${withToken(repo.remote, token)}"`} />
        </div>
      )}
      {error && <ErrorNote error={error} />}
      {token === undefined && may("artifacts.write") && (
        <button type="button" class="small second" onClick={mint}>
          Command with a token
        </button>
      )}
    </Card>
  );
}
