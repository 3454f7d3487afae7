/**
 * An abstract model of two hosts that commit to two shards with one key each. It has the steps of the proof in
 * `actors/runtime/DESIGN.md`. A search explores every order of these steps. A test can remove each rule, to show that
 * the search then finds a fault.
 */

export const RULES = {
  commitsExpectTheLast: "a commit expects the last message of its journal",
  journalsAreSealed: "a takeover seals the journal before it reads",
  checkpointsExpectTheLast: "a checkpoint expects the one before",
  checkpointsAreSealed: "a takeover seals the checkpoints",
  epochsAreCompared: "an epoch is written over the one that was read",
  replaysAreFenced: "a replay writes under the epoch of its taker",
  replaysReadTheEpoch: "a replay reads only commits under the epoch of the last owner",
  fromFollowsAcknowledgements: "only an acknowledged checkpoint makes a commit count as written",
  sourcesAreKept: "a host that takes a shard over from a taker reads what that one had to read",
  journalsAreOpenedFirst: "a journal has a message before an epoch holds its host's name",
  leasesAreChecked: "a shard is taken when the lease of its owner has ended",
  readsNeedTheLease: "a host answers reads while its lease lives",
  repliesFollowCommits: "a call is answered when its commit is stored",
  givenBackInKeys: "a shard is given back when its keys hold all commits",
  commitsWaitForRoom: "a host commits when the stream keeps all that a takeover would read",
} as const;
export type Rule = keyof typeof RULES;

export interface Bounds {
  commits: number;
  /** Number of responses of the store that can still be lost. A lost response may cause a second try. */
  lost: number;
  /** Number of leases that can still end. The host of such a lease may not notice its end. */
  deaths: number;
  /** Writes of one shard's epoch. */
  epochs: number;
}

export type ShardNumber = 0 | 1;
export type Source = [journal: string, epoch: number];
type Phase =
  | "away"
  | "claim"
  | "seal"
  | "sealJournal"
  | "replay"
  | "own"
  | "load"
  | "open"
  | "leave";

interface Held {
  phase: Phase;
  /** The epoch that the host's next write of the shard expects in the store, and under which the host commits. */
  epoch: number;
  from: Source | null;
  value: number;
}
export interface Try {
  tries: number;
  number: number;
  expects: number;
  answer: "stored" | "refused" | null;
}
export interface CommitTry extends Try {
  shard: ShardNumber;
  epoch: number;
  from: number;
  value: number;
}
export interface CheckpointTry extends Try {
  values: [number, number];
}
export interface HostState {
  /** Null when the host has stopped and starts no more. */
  name: string | null;
  shards: [Held, Held];
  commits: { last: number; number: number };
  checkpoints: { last: number; number: number };
  /** For each shard: the newest value that its key does not hold yet, and the position of the first such commit. */
  pending: [Pending | null, Pending | null];
  writing: [Pending | null, Pending | null];
  commit: CommitTry | null;
  checkpoint: CheckpointTry | null;
}
interface Pending {
  value: number;
  oldest: number;
}
/** A message of a journal: a commit has a number, and a seal has none. */
export interface Message {
  at: number;
  number: number | null;
  commit: Omit<CommitTry, keyof Try> | null;
}
export type Flight = { name: string } & ({ commit: CommitTry } | { checkpoint: CheckpointTry });

export interface ModelState {
  epochs: [EpochState, EpochState];
  keys: [number, number];
  journals: Record<string, { count: number; messages: Message[] }>;
  checkpoints: Record<string, { count: number; last: number; number: number | null }>;
  ended: string[];
  hosts: [HostState, HostState];
  inFlight: Flight[];
  /**
   * For each shard: `acknowledged` is the newest acknowledged value, `answered` all acknowledged values, and `seen`
   * the newest value that was read.
   */
  acknowledged: [number, number];
  answered: [number[], number[]];
  seen: [number, number];
  left: Bounds;
  fault: string | null;
}
interface EpochState {
  at: number;
  owner: string | null;
  from: Source | null;
}

export const SHARD_NUMBERS = [0, 1] as const;
export const INCARNATIONS = 2;
export const TRIES = 2;
/** Number of messages of a journal that the stream keeps: the messages that a takeover needs, and a seal. */
export const KEPT = 3;

export const away = (): Held => ({ phase: "away", epoch: 0, from: null, value: 0 });

export function initialState(left: Bounds, without?: Rule): ModelState {
  const epoch = (): EpochState => ({ at: 0, owner: null, from: null });
  const state: ModelState = {
    epochs: [epoch(), epoch()],
    keys: [0, 0],
    ...{ journals: {}, checkpoints: {}, ended: [], inFlight: [] },
    hosts: [newHost(null), newHost(null)],
    ...{ acknowledged: [0, 0], answered: [[], []], seen: [0, 0], left, fault: null },
  };
  for (const index of [0, 1] as const) start(state, index, `${"ab"[index]}0`, without);
  // The first host has taken both shards of an empty store.
  for (const shard of SHARD_NUMBERS) {
    state.epochs[shard] = { at: 1, owner: "a0", from: null };
    state.hosts[0].shards[shard] = { phase: "open", epoch: 1, from: null, value: 0 };
  }
  return state;
}

export function newHost(name: string | null): HostState {
  return {
    ...{ name, shards: [away(), away()] },
    ...{ commits: { last: 0, number: 0 }, checkpoints: { last: 0, number: 0 } },
    ...{ pending: [null, null], writing: [null, null], commit: null, checkpoint: null },
  };
}

export function start(state: ModelState, index: 0 | 1, name: string, without?: Rule): void {
  const host = newHost(name);
  state.hosts[index] = host;
  const isOpened = without !== "journalsAreOpenedFirst";
  const first: Message[] = isOpened ? [{ at: 1, number: 0, commit: null }] : [];
  state.journals[name] = { count: first.length, messages: first };
  state.checkpoints[name] = isOpened
    ? { count: 1, last: 1, number: 0 }
    : { count: 0, last: 0, number: null };
  if (isOpened) {
    host.commits = { last: 1, number: 1 };
    host.checkpoints = { last: 1, number: 1 };
  }
}

/**
 * Returns a copy that a step may change. Messages, writes in flight and pending values are shared, because steps
 * replace them and never modify them.
 */
export function copyOf(state: ModelState): ModelState {
  const { journals, checkpoints } = state;
  const [one, other] = state.hosts;
  return {
    epochs: [{ ...state.epochs[0] }, { ...state.epochs[1] }],
    keys: [...state.keys],
    journals: mapped(journals, ({ count, messages }) => ({ count, messages: [...messages] })),
    checkpoints: mapped(checkpoints, (checkpoint) => ({ ...checkpoint })),
    ended: [...state.ended],
    hosts: [hostCopy(one), hostCopy(other)],
    inFlight: [...state.inFlight],
    acknowledged: [...state.acknowledged],
    answered: [...state.answered],
    seen: [...state.seen],
    left: { ...state.left },
    fault: state.fault,
  };
}

const mapped = <T>(of: Record<string, T>, map: (one: T) => T): Record<string, T> => {
  const result: Record<string, T> = {};
  for (const name in of) if (of[name]) result[name] = map(of[name]);
  return result;
};

const hostCopy = (host: HostState): HostState => ({
  name: host.name,
  shards: [{ ...host.shards[0] }, { ...host.shards[1] }],
  commits: { ...host.commits },
  checkpoints: { ...host.checkpoints },
  pending: [...host.pending],
  writing: [...host.writing],
  commit: host.commit && { ...host.commit },
  checkpoint: host.checkpoint && { ...host.checkpoint },
});

export interface Step {
  step: string;
  apply(state: ModelState): void;
}
export type Has = (rule: Rule) => boolean;

export const lives = ({ ended }: ModelState, name: string) => !ended.includes(name);

export function end(state: ModelState, name: string): void {
  state.ended.push(name);
  state.ended.sort();
  state.left.deaths -= 1;
}

export function remove(state: ModelState, name: string): void {
  const [journal, checkpoint] = [state.journals[name], state.checkpoints[name]];
  if (journal) journal.messages = [];
  if (checkpoint) Object.assign(checkpoint, { last: 0, number: null });
}

/** Drops all shards of the host, ends its lease, and restarts it under another name, a limited number of times. */
export function startAnew(state: ModelState, index: 0 | 1, without?: Rule): void {
  const { name } = state.hosts[index];
  if (name === null) return;
  if (lives(state, name)) state.ended = [...state.ended, name].sort();
  const incarnation = Number(name.slice(1)) + 1;
  if (incarnation < INCARNATIONS) start(state, index, `${name[0]}${incarnation}`, without);
  else state.hosts[index] = newHost(null);
}
