/** The actor of one account's DevTools sessions. It limits their number and records how each session ended. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import {
  DEVTOOLS_ENDED_KEPT,
  DEVTOOLS_LAPSE_MS,
  DEVTOOLS_SESSIONS_MAX,
  LIVE_VIEWS_MAX,
} from "../../../schemas/rendering/devtools-limits.ts";
import {
  type CloseReason,
  DevtoolsSession,
  devtoolsSessions,
} from "../../../schemas/rendering/devtools-sessions.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

type Session = DeepReadonly<DevtoolsSession>;
type Sessions = { sessions: readonly Session[] };

/**
 * Stored at: account id
 *
 * State: `{ sessions }`: of each running session and the 20 that ended last `{ id, startedAt, renewedAt, isRunning?,
 * keepAliveMs, ended?, views? }`; `views` are the hashes of addresses of live views
 */
export const devtoolsSessionsActor = defineActor(devtoolsSessions, {
  state: z.object({ sessions: z.array(DevtoolsSession) }),
  initial: { sessions: [] },

  handlers: {
    open(before, { id, keepAliveMs }, { now }) {
      const state = settled(before, now);
      if (state.sessions.some((session) => session.id === id)) return { state, reply: {} };
      // A refusal stores nothing, so a session of a dead worker that was reported in the future would never end.
      const ahead = new Set(
        before.sessions.filter((one) => isAhead(one, now)).map((one) => one.id),
      );
      const running = state.sessions.filter(({ id, ended }) => !ended && !ahead.has(id));
      if (running.length >= DEVTOOLS_SESSIONS_MAX) {
        throw new ActorError(
          "limit_reached",
          `Cannot begin session: the account has ${DEVTOOLS_SESSIONS_MAX} already; end one with DELETE`,
        );
      }
      const session: Session = { id, keepAliveMs, startedAt: now, renewedAt: now };
      return { state: kept({ sessions: [...state.sessions, session] }), reply: {} };
    },

    renew(before, { id }, { now }) {
      const state = settled(before, now);
      const session = state.sessions.find((one) => one.id === id);
      if (!session || session.ended) return { state, reply: { hasEnded: true } };
      const renewed: Session = { ...session, renewedAt: now, isRunning: true };
      return { state: changed(state, renewed), reply: { hasEnded: false } };
    },

    end(before, { id, reason }, { now }) {
      const state = settled(before, now);
      const session = state.sessions.find((one) => one.id === id);
      if (!session || session.ended) return { state, reply: {} };
      return { state: kept(changed(state, ending(session, now, reason))), reply: {} };
    },

    list(state, _input, { now }) {
      const sessions = settled(state, now).sessions.filter(({ ended }) => !ended);
      return { state, reply: { sessions } };
    },

    get(state, { id }, { now }) {
      const session = settled(state, now).sessions.find((one) => one.id === id);
      if (!session) throw unknown();
      return { state, reply: session };
    },

    addLiveView(before, { id, view }, { now }) {
      const state = settled(before, now);
      const session = running(state, id);
      const valid = (session.views ?? []).filter(({ expiresAt }) => expiresAt > now);
      const views = [...valid, view].slice(-LIVE_VIEWS_MAX);
      return { state: changed(state, { ...session, views }), reply: {} };
    },

    findLiveView(state, { id, hash }, { now }) {
      const { views = [] } = running(settled(state, now), id);
      const view = views.find((one) => one.hash === hash && one.expiresAt > now);
      if (!view) {
        throw new ActorError("not_found", "Cannot find live view: it is unknown or has expired");
      }
      return { state, reply: view };
    },
  },
});

/**
 * Returns the sessions at time `now`. A session that its worker has not reported for too long counts as ended,
 * because the worker is assumed dead.
 */
function settled(stored: Sessions, now: number): Sessions {
  const state = atPresent(stored, now);
  const hasLapsed = ({ ended, renewedAt }: Session) =>
    !ended && now - renewedAt >= DEVTOOLS_LAPSE_MS;
  if (!state.sessions.some(hasLapsed)) return state;
  const sessions = state.sessions.map((session) =>
    hasLapsed(session)
      ? ending(session, session.renewedAt + DEVTOOLS_LAPSE_MS, "WorkerLost")
      : session,
  );
  return kept({ sessions });
}

/** Whether the last report is in the future, because the clock was set back. A living worker soon reports again. */
const isAhead = ({ ended, renewedAt }: Session, now: number) => !ended && renewedAt > now;

/** Limits reports to the present, so that the session of a dead worker ends in time after the clock was set back. */
function atPresent(state: Sessions, now: number): Sessions {
  if (!state.sessions.some((session) => isAhead(session, now))) return state;
  const sessions = state.sessions.map((session) =>
    isAhead(session, now) ? { ...session, renewedAt: now } : session,
  );
  return { sessions };
}

/** Returns the session as ended. Its live views are removed, because nobody can view a session that has ended. */
function ending({ views: _, ...session }: Session, at: number, reason: CloseReason): Session {
  return { ...session, ended: { at, reason } };
}

const changed = ({ sessions }: Sessions, to: Session): Sessions => ({
  sessions: sessions.map((session) => (session.id === to.id ? to : session)),
});

/** Drops the oldest ended sessions above the limit. */
function kept({ sessions }: Sessions): Sessions {
  const ended = sessions
    .filter((session) => session.ended)
    .toSorted((one, other) => (one.ended?.at ?? 0) - (other.ended?.at ?? 0));
  const dropped = new Set(ended.slice(0, Math.max(0, ended.length - DEVTOOLS_ENDED_KEPT)));
  return { sessions: sessions.filter((session) => !dropped.has(session)) };
}

function running({ sessions }: Sessions, id: string): Session {
  const session = sessions.find((one) => one.id === id && !one.ended);
  if (!session) throw unknown();
  return session;
}

const unknown = () =>
  new ActorError("not_found", "Cannot find session: it is unknown or has ended");
