/** Decides how long a client must wait after wrong passwords, without locking out the owner of the e-mail address. */

import { loginGuard } from "../../../schemas/account/login-guard.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { LoginGuardState } from "./login-guard-state.ts";

/**
 * The number of wrong passwords for one e-mail address that one source may send without waiting. A source is a
 * network, a browser or a session. Before each further attempt it must wait.
 */
export const SOURCE_GUESSES_FREE = 10;
/**
 * The first waiting time of a source. It doubles with each further attempt (NIST SP 800-63B section 5.2.2: from 30 s
 * to an hour).
 */
export const SOURCE_PAUSE_MS = 30_000;
export const SOURCE_PAUSE_MS_MAX = 3_600_000;
/**
 * The number of wrong passwords from one unknown source that count towards the shared limit. So one network alone
 * cannot delay other sources.
 */
export const GUESSES_PER_SOURCE_COUNTED = 3;
/**
 * The shared limit of counted wrong passwords from all unknown sources (at least ten networks). Past it every unknown
 * source must wait.
 */
export const STRANGER_GUESSES_FREE = 30;
/**
 * The first waiting time of unknown sources, and the longest. They are short enough that a person with a new browser
 * can sign in between the attempts of others. With the longest, attackers have 288 guesses a day.
 */
export const STRANGER_PAUSE_MS = 10_000;
export const STRANGER_PAUSE_MS_MAX = 300_000;
/** Wrong passwords older than this no longer count. */
export const GUESSES_KEPT_MS = 86_400_000;
/**
 * Limits the sources that are stored for one person. Past the limit the oldest is dropped, but its attempts still
 * count towards the shared limit.
 */
export const SOURCES_KEPT_MAX = 100;

/**
 * Stored at: e-mail address, somebody's or not
 *
 * State: `{ sources: [{ from, tries, lastAt, counted }], strangers: { tries, lastAt } }`: wrong passwords of the last
 * day, by network, browser or session; forgotten a day after the last
 */
export const loginGuardActor = defineActor(loginGuard, {
  state: LoginGuardState,
  initial: { sources: [], strangers: { tries: 0, lastAt: 0 } },

  handlers: {
    take(state, { from, isKnown }, { now }) {
      const { sources, strangers } = ofToday(state, now);
      const before = sources.find((source) => source.from === from) ?? { ...NO_TRIES, counted: 0 };
      const waitMs = Math.max(
        waitOf(before, OF_SOURCE, now),
        isKnown ? 0 : waitOf(strangers, OF_STRANGERS, now),
      );
      if (waitMs > 0) return { state, reply: { waitMs } };
      // Only the first wrong passwords of an unknown source count for all unknown sources, so one network cannot
      // delay others.
      const isCounted = !isKnown && before.counted < GUESSES_PER_SOURCE_COUNTED;
      const counted = before.counted + Number(isCounted);
      const others = sources.filter((source) => source !== before);
      const latest = { from, tries: before.tries + 1, lastAt: now, counted };
      return {
        state: {
          sources: [...others, latest].slice(-SOURCES_KEPT_MAX),
          strangers: isKnown
            ? strangers
            : { tries: strangers.tries + Number(isCounted), lastAt: now },
        },
        reply: { waitMs },
        // Only the first attempt sets the reminder. Later the reminder exists already and sets itself again.
        ...(state.sources.length === 0 && { remind: { forget: now + GUESSES_KEPT_MS } }),
      };
    },

    passed(state, { from }) {
      const known = state.sources.filter((source) => source.from === from);
      return { state: known.length > 0 ? without(state, known) : state, reply: {} };
    },

    unchecked(state, { from }) {
      const found = state.sources.find((source) => source.from === from);
      if (!found) return { state, reply: {} };
      const others = without(state, [found]);
      const tries = found.tries - 1;
      if (tries === 0) return { state: others, reply: {} };
      const counted = Math.min(found.counted, tries);
      const { sources, strangers } = others;
      return {
        state: {
          sources: [...sources, { ...found, tries, counted }],
          strangers: { ...strangers, tries: strangers.tries + counted },
        },
        reply: {},
      };
    },

    forget(state, _input, { now }) {
      const lastAt = Math.max(state.strangers.lastAt, ...state.sources.map((one) => one.lastAt));
      if (lastAt === 0) return { state };
      const at = lastAt + GUESSES_KEPT_MS;
      return at > now ? { state, remind: { forget: at } } : { forget: true as const };
    },
  },
});

type State = DeepReadonly<LoginGuardState>;

function ofToday(state: State, now: number): State {
  const old = state.sources.filter(({ lastAt }) => now >= lastAt + GUESSES_KEPT_MS);
  return old.length > 0 ? without(state, old) : state;
}

function without({ sources, strangers }: State, gone: State["sources"]): State {
  const counted = gone.reduce((sum, source) => sum + source.counted, 0);
  return {
    sources: sources.filter((source) => !gone.includes(source)),
    strangers: { ...strangers, tries: Math.max(0, strangers.tries - counted) },
  };
}

type Tries = DeepReadonly<LoginGuardState["strangers"]>;
const NO_TRIES: Tries = { tries: 0, lastAt: 0 };

interface Pace {
  free: number;
  firstMs: number;
  mostMs: number;
}
const OF_SOURCE: Pace = {
  free: SOURCE_GUESSES_FREE,
  firstMs: SOURCE_PAUSE_MS,
  mostMs: SOURCE_PAUSE_MS_MAX,
};
const OF_STRANGERS: Pace = {
  free: STRANGER_GUESSES_FREE,
  firstMs: STRANGER_PAUSE_MS,
  mostMs: STRANGER_PAUSE_MS_MAX,
};

/** Returns the remaining waiting time. The pause doubles with every attempt after the free ones. */
function waitOf({ tries, lastAt }: Tries, { free, firstMs, mostMs }: Pace, now: number): number {
  // A time in the future means that the clock was set back, so it is ignored.
  if (tries < free || lastAt > now) return 0;
  const pauseMs = Math.min(firstMs * 2 ** (tries - free), mostMs);
  return Math.max(0, lastAt + pauseMs - now);
}
