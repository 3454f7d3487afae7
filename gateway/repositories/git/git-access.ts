/** Decides who may do what with which repository, by the token that a git client shows. */
import type { Request } from "express";
import { ActorError, type ErrorCode } from "../../../schemas/errors.ts";
import { NamespaceName, RepoName } from "../../../schemas/repositories/git-names.ts";
import { type RepoAddress, repo } from "../../../schemas/repositories/repo.ts";
import { Id } from "../../../schemas/values.ts";
import { FailedAuthentications } from "../../account/failed-authentications.ts";
import type { GitParts } from "../git-parts.ts";
import { shownToken } from "./git-auth.ts";
import type { Exchange, Service } from "./git-exchange.ts";

export class GitAccess {
  readonly #parts: Pick<GitParts, "actors" | "finder">;
  readonly #failed: FailedAuthentications;

  constructor(parts: Pick<GitParts, "actors" | "finder">, now: () => number) {
    this.#parts = parts;
    this.#failed = new FailedAuthentications(now);
  }

  /** Calls `use` while the token is verified, and resolves to its result once the token is known to be good. */
  async authorize<T>(
    { request, signal }: Exchange,
    service: Service,
    use: (id: string, address: RepoAddress) => Promise<T>,
  ): Promise<T> {
    const secretHash = shownToken(request.get("authorization"));
    if (secretHash === undefined) {
      throw new ActorError("unauthenticated", "A token of this repository is needed");
    }
    const address = addressOf(request);
    const client = request.ip ?? "";
    // A repository's token names no identity but itself.
    const credential = { identity: secretHash, proof: "" };
    const attempt = await this.#failed.begin(client, credential);
    const opens = async (id: string) => {
      const used = use(id, address);
      // Only a client whose token is good hears of this call's failure.
      used.catch(() => {});
      const input = { address, secretHash };
      const token = await this.#parts.actors
        .call(repo, id, "verifyToken", input, { signal })
        .catch((error: unknown) => {
          throw isRefusal(error, "forbidden") ? new TokenRefused() : error;
        });
      return [token, await used] as const;
    };
    const [token, result] = await this.#parts.finder
      .with(address, signal, opens)
      .catch((error: unknown) => {
        // Strangers must not learn which repositories exist.
        const isUnknown = error instanceof TokenRefused || isRefusal(error, "not_found");
        const retryAfterS = attempt.settle(isUnknown ? "unknown" : "unclear");
        if (retryAfterS > 0) {
          const text = "Too many unknown tokens came from this address";
          throw new ActorError("rate_limited", text, { retryAfterS });
        }
        throw isUnknown ? new ActorError("forbidden", NOT_OPENED) : error;
      });
    attempt.settle("good");
    if (service === "git-receive-pack" && token.scope !== "write") {
      throw new ActorError("forbidden", "Insufficient permissions: this token can only read");
    }
    return result;
  }
}

const NOT_OPENED = "Invalid or expired token, or there is no such repository";
class TokenRefused extends Error {}

const isRefusal = (error: unknown, code: ErrorCode) =>
  error instanceof ActorError && error.code === code;

/** Reads the address in the path. An address that no repository can have is as unknown as any other. */
function addressOf({ params }: Request): RepoAddress {
  const accountId = Id.safeParse(params.account);
  const namespace = NamespaceName.safeParse(params.namespace);
  const name = RepoName.safeParse(String(params.name).replace(/\.git$/, ""));
  if (!accountId.success || !namespace.success || !name.success) {
    throw new ActorError("forbidden", NOT_OPENED);
  }
  return { accountId: accountId.data, namespace: namespace.data, name: name.data };
}
