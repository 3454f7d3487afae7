import { expect } from "chai";
import { EVENTS_KEPT, EVENTS_LISTED_MAX } from "../../schemas/git-limits.ts";
import type { RepoEvent } from "../../schemas/repo-events.ts";
import { runHandler } from "../../scripts/testing/run-handler.ts";
import { repoEventsActor } from "./repo-events.ts";

const created = (at: number): RepoEvent => ({
  type: "created",
  repoId: "0".repeat(16),
  namespace: "space",
  repoName: "repo",
  at,
});

describe("repo-events", () => {
  it("happened() keeps the last EVENTS_KEPT in their order, and list() walks them", () => {
    let state = repoEventsActor.initial;
    const rows = new Map<string, RepoEvent>();
    for (let at = 1; at <= EVENTS_KEPT + 5; at++) {
      const handled = runHandler(
        repoEventsActor,
        "happened",
        state,
        { event: created(at) },
        { rows },
      );
      state = handled.state;
      for (const [row, event] of Object.entries(handled.rows)) {
        if (event === null) rows.delete(row);
        else rows.set(row, event as RepoEvent);
      }
    }
    expect(rows.size).to.equal(EVENTS_KEPT);
    const seen: number[] = [];
    for (let after = 0; ; ) {
      const input = { after, limit: EVENTS_LISTED_MAX };
      const { reply, changed } = runHandler(repoEventsActor, "list", state, input, { rows });
      expect(changed).to.equal(false);
      expect(reply.last).to.equal(EVENTS_KEPT + 5);
      if (reply.events.length === 0) break;
      seen.push(...reply.events.map(({ event }) => event.at));
      after = reply.events.at(-1)?.number ?? 0;
    }
    expect(seen).to.deep.equal(Array.from({ length: EVENTS_KEPT }, (_, i) => i + 6));
  });

  it("list() of an account where nothing happened is empty", () => {
    const { reply } = runHandler(repoEventsActor, "list", repoEventsActor.initial, {
      after: 7,
      limit: 1,
    });
    expect(reply).to.deep.equal({ events: [], last: 0 });
  });
});
