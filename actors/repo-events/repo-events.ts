/** Keeps what happened last in an account's repositories, in its order. */
import { z } from "zod";
import { EVENTS_KEPT, EVENTS_LISTED_BYTES } from "../../schemas/git-limits.ts";
import { RepoEvent, repoEvents } from "../../schemas/repo-events.ts";
import { defineActor } from "../runtime/define-actor.ts";

export const repoEventsActor = defineActor(repoEvents, {
  /** Number of the newest event. */
  state: z.object({ last: z.int().min(0) }),
  initial: { last: 0 },
  rows: RepoEvent,

  handlers: {
    happened(state, { event }) {
      const last = state.last + 1;
      const rows = { [`${last}`]: event };
      const oldest = last - EVENTS_KEPT;
      return { state: { last }, rows: oldest > 0 ? { ...rows, [`${oldest}`]: null } : rows };
    },

    list(state, { after, limit }, { rows }) {
      const { last } = state;
      const events = [];
      let bytes = 0;
      const first = Math.max(after, last - EVENTS_KEPT) + 1;
      for (let number = first; number <= last && events.length < limit; number++) {
        const event = rows.get(`${number}`);
        if (!event) continue;
        bytes += JSON.stringify(event).length;
        if (events.length > 0 && bytes > EVENTS_LISTED_BYTES) break;
        events.push({ number, event });
      }
      return { state, reply: { events, last } };
    },
  },
});
