/** Publishes clone and fetch events of an account, at most one of each type per repository and FETCH_EVENT_MS. */
import type { Logger } from "pino";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import type { OpenedRepo } from "../opened-repo.ts";

/**
 * Clones of a repository within this time are one event; so are its fetches. Otherwise the fetches of frequent builds
 * would displace all other stored events.
 */
export const FETCH_EVENT_MS = 1_000;

type FetchType = "cloned" | "fetched";

export class FetchEvents {
  readonly #actors: ActorClient;
  readonly #now: () => number;
  /** Times of the events that were reported in the last FETCH_EVENT_MS, oldest first. */
  readonly #reportedAt = new Map<string, number>();

  constructor(actors: ActorClient, now: () => number) {
    this.#actors = actors;
    this.#now = now;
  }

  /** Reports a fetch without waiting for the result. A fetch succeeds even if its report is lost. */
  report(repo: OpenedRepo, question: Buffer | undefined, logger: Logger): void {
    const { id: repoId, accountId, address } = repo;
    const type = fetchTypeOf(repo, question);
    const at = this.#now();
    for (const [which, toldAt] of this.#reportedAt) {
      if (Math.abs(at - toldAt) < FETCH_EVENT_MS) break;
      this.#reportedAt.delete(which);
    }
    const which = `${repoId} ${type}`;
    if (this.#reportedAt.has(which)) return;
    this.#reportedAt.set(which, at);
    const { namespace, name: repoName } = address;
    const event = { type, repoId, namespace, repoName, at };
    this.#actors.send(repoEvents, accountId, "happened", { event }).catch((error: unknown) => {
      logger.warn({ err: error }, "fetch event not sent");
    });
  }
}

const WANTED = /[0-9a-f]{4}want ([0-9a-f]{40})/g;

/**
 * A request is a clone if the client names no object that it has, and wants only values of refs. Requests for other
 * objects, as later in a partial clone, count as fetches.
 */
function fetchTypeOf(
  { manifest }: Pick<OpenedRepo, "manifest">,
  question: Buffer | undefined,
): FetchType {
  if (!question) return "cloned";
  if (question.includes("have ")) return "fetched";
  const tips = new Set(manifest.refs.values());
  for (const [, id = ""] of question.toString("latin1").matchAll(WANTED)) {
    if (!tips.has(id)) return "fetched";
  }
  return "cloned";
}
