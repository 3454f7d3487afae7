/** Counts the agents of an account and their stored bytes, and enforces the limits of both. */
import { createHash } from "node:crypto";
import { readAgentKey } from "../../../schemas/apps/app-names.ts";
import { type AgentLimits, appUsage, noRoom } from "../../../schemas/apps/app-usage.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { type AgentBytes, AppUsageRow, AppUsageState } from "./app-usage-state.ts";

/** Number of rows that count the agents of one app. With AGENTS_PER_ACCOUNT_MAX agents, each row has 80 kB. */
const AGENT_USAGE_ROWS = 64;
/** Limit of the agents in one row, at some 50 bytes each, so that the row fits in ROW_BYTES_MAX. */
export const AGENT_USAGE_ENTRIES_MAX = 4_000;

/**
 * Time for which a purged app can reserve nothing. Its last turns end much earlier, except on a host that stood still.
 * The limit below is for the number of such apps.
 */
const PURGED_APPS_KEPT_MS = 3_600_000;
export const PURGED_APPS_KEPT_MAX = 500;

type State = DeepReadonly<AppUsageState>;
type Rows = ReadonlyMap<string, DeepReadonly<AppUsageRow>>;

const NOTHING: AgentBytes = [0, 0, 0];
const NONE = { agents: 0, bytes: 0 };
const PARTS = { log: 0, inbox: 1, outgoing: 2 } as const;

/**
 * Stored at: account id
 *
 * State: `{ apps: { <app>: { agents, bytes } }, purged?: [{ id, at }] }`: how many agents keep something, and what they
 * keep; the apps that were deleted within an hour
 *
 * Row `<app>/<0 to 63>`: `{ agents: { <hash of the agent's key>: [bytes of its log, of its inbox, of its outgoing
 * webhooks] } }`
 */
export const appUsageActor = defineActor(appUsage, {
  state: AppUsageState,
  rows: AppUsageRow,
  initial: { apps: {} },

  handlers: {
    hold(state, { agent, bytes, wanted, limits, appId }, { rows }) {
      if (state.purged?.some(({ id }) => id === appId)) {
        throw new ActorError("not_found", "Cannot store: the app was deleted");
      }
      const place = placeOf(agent);
      const before = bytesOf(rows, place);
      const total = totalOf(state);
      const free = limits.bytes === 0 ? Infinity : limits.bytes - total.bytes + before[PARTS.log];
      if (bytes > before[PARTS.log]) {
        if (before[PARTS.log] === 0 && total.agents >= limits.agents) throw tooMany(limits);
        if (bytes > free) throw noRoom(limits.bytes);
      }
      const held = Math.max(bytes, Math.min(wanted, free));
      return { ...changed(state, rows, place, { log: held }), reply: { bytes: held } };
    },

    stored(state, { agent, part, bytes }, { rows }) {
      const place = placeOf(agent);
      const { agents = {} } = rows.get(place.row) ?? {};
      // Rows may fill up, because an address without an agent can have an inbox too. A full row counts no further
      // addresses.
      const isFull = Object.keys(agents).length >= AGENT_USAGE_ENTRIES_MAX;
      if (isFull && !agents[place.entry]) return { state };
      return changed(state, rows, place, { [part]: bytes });
    },

    purged(state, { app, id }, { rows, now }) {
      // A late copy must not remove what the next app of this name keeps.
      if (id !== undefined && state.purged?.some((one) => one.id === id)) return { state };
      const { [app]: _, ...apps } = state.apps;
      const names = [...rows.keys()].filter((name) => name.startsWith(`${app}/`));
      const next =
        id === undefined ? { ...state, apps } : { apps, purged: withPurged(state, id, now) };
      return { state: next, rows: Object.fromEntries(names.map((name) => [name, null])) };
    },

    get(state) {
      const apps = Object.entries(state.apps).map(([name, counted]) => ({ name, ...counted }));
      return { state, reply: { ...totalOf(state), apps } };
    },
  },
});

/** Returns the ids of the apps that were purged last, with this one. */
const withPurged = ({ purged = [] }: State, id: string, now: number) =>
  [
    ...purged.filter((one) => one.id !== id && one.at > now - PURGED_APPS_KEPT_MS),
    { id, at: now },
  ].slice(-PURGED_APPS_KEPT_MAX);

interface Place {
  app: string;
  row: string;
  entry: string;
}

/** Agents are stored under a hash of their keys, because names may be long and contain any characters. */
function placeOf(agent: string): Place {
  const address = readAgentKey(agent);
  if (!address) throw new ActorError("invalid_request", "Cannot count: expected an agent's key");
  const hash = createHash("sha256").update(agent).digest();
  const number = hash.readUInt16BE(0) % AGENT_USAGE_ROWS;
  const { app } = address;
  return { app, row: `${app}/${number}`, entry: hash.toString("base64url").slice(0, ENTRY_CHARS) };
}

/** Characters of a hash: 96 bits, so that no two agents of an account share a hash. */
const ENTRY_CHARS = 16;

const bytesOf = (rows: Rows, { row, entry }: Place): DeepReadonly<AgentBytes> =>
  rows.get(row)?.agents[entry] ?? NOTHING;

function changed(
  state: State,
  rows: Rows,
  place: Place,
  parts: { [part in keyof typeof PARTS]?: number },
): { state: State; rows?: Record<string, DeepReadonly<AppUsageRow> | null> } {
  const before = bytesOf(rows, place);
  const after: AgentBytes = [
    parts.log ?? before[PARTS.log],
    parts.inbox ?? before[PARTS.inbox],
    parts.outgoing ?? before[PARTS.outgoing],
  ];
  const more = sumOf(after) - sumOf(before);
  if (after.every((bytes, index) => bytes === before[index])) return { state };
  const { app, row, entry } = place;
  const known = state.apps[app] ?? NONE;
  const counted = {
    agents: known.agents + countOf(after) - countOf(before),
    bytes: known.bytes + more,
  };
  const { [entry]: _, ...others } = rows.get(row)?.agents ?? {};
  const agents = sumOf(after) === 0 ? others : { ...others, [entry]: after };
  const isEmpty = Object.keys(agents).length === 0;
  return {
    state: { ...state, apps: { ...state.apps, [app]: counted } },
    rows: { [row]: isEmpty ? null : { agents } },
  };
}

const sumOf = ([log, inbox, outgoing]: DeepReadonly<AgentBytes>) => log + inbox + outgoing;
/** Counts an agent only if it has a log. An agent that has only an inbox was never opened. */
const countOf = (bytes: DeepReadonly<AgentBytes>) => (bytes[PARTS.log] > 0 ? 1 : 0);

function totalOf({ apps }: State) {
  let [agents, bytes] = [0, 0];
  for (const counted of Object.values(apps)) {
    agents += counted.agents;
    bytes += counted.bytes;
  }
  return { agents, bytes };
}

const tooMany = ({ agents }: AgentLimits) =>
  new ActorError(
    "limit_reached",
    `Cannot create the agent: the account has ${agents}, which is the limit (TRUNKLINE_AGENTS_PER_ACCOUNT)`,
  );
