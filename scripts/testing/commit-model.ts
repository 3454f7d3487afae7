/**
 * An abstract model of how two hosts commit to two shards with one key each: what `actors/runtime/DESIGN.md` proves,
 * step by step. A search explores every order of its steps. Each rule can be taken out, to see that the search finds
 * the fault.
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
  /** Answers of the store that are lost; each may bring a second try. */
  lost: number;
  /** Leases that end while their host may not know. */
  deaths: number;
  /** Writes of one shard's epoch. */
  epochs: number;
}

type ShardNumber = 0 | 1;
type Source = [journal: string, epoch: number];
type Phase = "away" | "claim" | "seal" | "sealJournal" | "replay" | "own" | "load" | "open" | "leave";

interface Held {
  phase: Phase;
  /** The epoch that the next write expects, and under which the host commits. */
  epoch: number;
  from: Source | null;
  value: number;
}
interface Try {
  tries: number;
  number: number;
  expects: number;
  answer: "stored" | "refused" | null;
}
interface CommitTry extends Try {
  shard: ShardNumber;
  epoch: number;
  from: number;
  value: number;
}
interface CheckpointTry extends Try {
  values: [number, number];
}
interface HostState {
  /** Null once the host goes on no more. */
  name: string | null;
  shards: [Held, Held];
  commits: { last: number; number: number };
  checkpoints: { last: number; number: number };
  /** By shard: the newest value that is not in its key, and where the first of those commits is. */
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
interface Message {
  at: number;
  number: number | null;
  commit: Omit<CommitTry, keyof Try> | null;
}
type Flight = { name: string } & ({ commit: CommitTry } | { checkpoint: CheckpointTry });

export interface ModelState {
  epochs: [EpochState, EpochState];
  keys: [number, number];
  journals: Record<string, { count: number; messages: Message[] }>;
  checkpoints: Record<string, { count: number; last: number; number: number | null }>;
  ended: string[];
  hosts: [HostState, HostState];
  inFlight: Flight[];
  /** By shard: the newest acknowledged value, all of them, and the newest that was read. */
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

const SHARD_NUMBERS = [0, 1] as const;
const INCARNATIONS = 2;
const TRIES = 2;
/** Messages that the stream keeps of a journal: those a takeover needs, and a seal. */
const KEPT = 3;

const away = (): Held => ({ phase: "away", epoch: 0, from: null, value: 0 });

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

function newHost(name: string | null): HostState {
  return {
    ...{ name, shards: [away(), away()] },
    ...{ commits: { last: 0, number: 0 }, checkpoints: { last: 0, number: 0 } },
    ...{ pending: [null, null], writing: [null, null], commit: null, checkpoint: null },
  };
}

function start(state: ModelState, index: 0 | 1, name: string, without?: Rule): void {
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

/** All states that one step leads to, with the name of the step. */
export function* stepsFrom(
  state: ModelState,
  without?: Rule,
): Generator<{ step: string; state: ModelState }> {
  for (const change of changesOf(state, (rule) => rule !== without, without)) {
    const next = copyOf(state);
    change.apply(next);
    readAll(next, without);
    yield { step: change.step, state: next };
  }
}

/** A copy that a step may change. Messages, writes in flight and pending values are never changed, only replaced. */
function copyOf(state: ModelState): ModelState {
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

interface Step {
  step: string;
  apply(state: ModelState): void;
}
type Has = (rule: Rule) => boolean;

function* changesOf(state: ModelState, has: Has, without?: Rule): Generator<Step> {
  for (const index of [0, 1] as const) {
    const host = state.hosts[index];
    if (host.name === null) continue;
    const { name } = host;
    if (lives(state, name)) {
      if (state.left.deaths > 0) yield { step: `the lease of ${name} ends`, apply: (to) => end(to, name) };
    } else yield { step: `${name} goes on anew`, apply: (to) => startAnew(to, index, without) };
    for (const shard of SHARD_NUMBERS) yield* placementSteps(state, index, shard, has);
    yield* commitSteps(state, index, has, without);
    yield* checkpointSteps(state, index, has, without);
  }
  yield* deliveries(state, has);
  for (const name of Object.keys(state.journals)) {
    const isNamed = state.epochs.some(({ owner, from }) => owner === name || from?.[0] === name);
    const isEmpty = state.journals[name]?.messages.length === 0;
    if (lives(state, name) || isNamed || isEmpty) continue;
    yield { step: `the journal of ${name} is removed`, apply: (to) => remove(to, name) };
  }
}

const lives = ({ ended }: ModelState, name: string) => !ended.includes(name);

function end(state: ModelState, name: string): void {
  state.ended.push(name);
  state.ended.sort();
  state.left.deaths -= 1;
}

function remove(state: ModelState, name: string): void {
  const [journal, checkpoint] = [state.journals[name], state.checkpoints[name]];
  if (journal) journal.messages = [];
  if (checkpoint) Object.assign(checkpoint, { last: 0, number: null });
}

/** Drops all shards, ends the lease, and goes on under another name, a limited number of times. */
function startAnew(state: ModelState, index: 0 | 1, without?: Rule): void {
  const { name } = state.hosts[index];
  if (name === null) return;
  if (lives(state, name)) state.ended = [...state.ended, name].sort();
  const incarnation = Number(name.slice(1)) + 1;
  if (incarnation < INCARNATIONS) start(state, index, `${name[0]}${incarnation}`, without);
  else state.hosts[index] = newHost(null);
}

function* placementSteps(state: ModelState, index: 0 | 1, shard: ShardNumber, has: Has): Generator<Step> {
  const host = state.hosts[index];
  const { phase } = host.shards[shard];
  const name = host.name ?? "";
  const step = (what: string, apply: Step["apply"]) => ({ step: `${name} ${what} ${shard}`, apply });
  const { owner, at } = state.epochs[shard];
  if (phase === "away") {
    const isFree = owner === null || owner === name || !lives(state, owner) || !has("leasesAreChecked");
    if (!isFree || !lives(state, name) || at >= state.left.epochs) return;
    yield step("looks at the epoch of", (to) => look(to, index, shard, has));
  } else if (phase === "open") {
    const isBusy = host.commit?.shard === shard;
    const isPending = host.pending[shard] !== null || host.writing[shard] !== null;
    if (isBusy || (isPending && has("givenBackInKeys")) || at >= state.left.epochs) return;
    yield step("drops, to give it back,", (to) => {
      to.hosts[index].shards[shard].phase = "leave";
      to.hosts[index].pending[shard] = null;
    });
  } else yield step(phase, (to) => goOn(to, index, shard, has));
}

function look(state: ModelState, index: 0 | 1, shard: ShardNumber, has: Has): void {
  const { name, shards } = state.hosts[index];
  const { at, owner, from } = state.epochs[shard];
  const ofOwner: Source | null = owner === null || owner === name ? null : [owner, at];
  const source = has("sourcesAreKept") ? (from ?? ofOwner) : ofOwner;
  shards[shard] = { phase: "claim", epoch: at, from: source, value: 0 };
}

/** The next step of a shard that is being taken or given back. */
function goOn(state: ModelState, index: 0 | 1, shard: ShardNumber, has: Has): void {
  const { name, shards } = state.hosts[index];
  const held = shards[shard];
  const epoch = state.epochs[shard];
  const isExpected = epoch.at === held.epoch || !has("epochsAreCompared");
  const write = (owner: string | null, from: Source | null) => {
    state.epochs[shard] = { at: epoch.at + 1, owner, from };
    held.epoch = epoch.at + 1;
  };
  if (["claim", "own", "leave"].includes(held.phase) && !isExpected) {
    shards[shard] = away();
  } else if (held.phase === "claim") {
    write(name, held.from);
    held.phase = held.from ? "seal" : "load";
  } else if (held.phase === "seal") {
    const sealed = state.checkpoints[held.from?.[0] ?? ""];
    if (sealed && has("checkpointsAreSealed")) {
      sealed.count += 1;
      Object.assign(sealed, { last: sealed.count, number: null });
    }
    held.phase = "sealJournal";
  } else if (held.phase === "sealJournal") {
    const journal = state.journals[held.from?.[0] ?? ""];
    const isSealed = journal?.messages.some(({ number }) => number === null);
    if (journal && !isSealed && has("journalsAreSealed")) {
      append(journal, { number: null, commit: null });
    }
    held.phase = "replay";
  } else if (held.phase === "replay") {
    const value = replayed(state, shard, held.from, has);
    if (value !== undefined && epoch.at !== held.epoch && has("replaysAreFenced")) {
      shards[shard] = away();
      return;
    }
    if (value !== undefined) put(state, shard, value);
    held.phase = "own";
  } else if (held.phase === "own") {
    write(name, null);
    held.phase = "load";
  } else if (held.phase === "load") {
    held.value = state.keys[shard];
    held.phase = "open";
    const isOwner = epoch.at === held.epoch;
    if (isOwner && held.value < state.acknowledged[shard]) state.fault = "an acknowledged change is lost";
  } else if (held.phase === "leave") {
    write(null, null);
    shards[shard] = away();
  }
}

/** The value that a journal holds for the shard, up to the seal. */
function replayed(state: ModelState, shard: ShardNumber, from: Source | null, has: Has): number | undefined {
  const [journal = "", epoch] = from ?? [];
  const all = state.journals[journal]?.messages ?? [];
  const sealedAt = all.findIndex(({ number }) => number === null);
  const read = sealedAt < 0 ? all : all.slice(0, sealedAt);
  const needed = read.at(-1)?.commit?.from ?? 0;
  const found = read.findLast(
    ({ at, commit }) =>
      at >= needed &&
      commit?.shard === shard &&
      (commit.epoch === epoch || !has("replaysReadTheEpoch")),
  );
  return found?.commit?.value;
}

function* commitSteps(state: ModelState, index: 0 | 1, has: Has, without?: Rule): Generator<Step> {
  const host = state.hosts[index];
  const { commit, name } = host;
  if (!commit) {
    for (const shard of SHARD_NUMBERS) {
      if (host.shards[shard].phase !== "open" || state.left.commits === 0) continue;
      const needed = host.commits.last + 1 - fromOf(host, has);
      if (needed >= KEPT - 1 && has("commitsWaitForRoom")) continue;
      yield { step: `${name} commits to ${shard}`, apply: (to) => sendCommit(to, index, shard, has) };
    }
    return;
  }
  if (commit.answer === "stored") {
    yield { step: `${name} has its commit stored`, apply: (to) => committed(to, index, commit.expects, has) };
  } else if (commit.answer === "refused") {
    const last = state.journals[name ?? ""]?.messages.at(-1);
    const isOwn = last?.number === commit.number;
    if (isOwn) yield { step: `${name} finds its commit`, apply: (to) => committed(to, index, last.at, has) };
    else if ((last?.at ?? 0) !== commit.expects) {
      yield { step: `${name} has lost its journal`, apply: (to) => startAnew(to, index, without) };
    }
  } else if (commit.tries < TRIES && state.left.lost > 0) {
    yield {
      step: `${name} repeats its commit`,
      apply(to) {
        const again = to.hosts[index].commit;
        if (!again) return;
        again.tries += 1;
        to.left.lost -= 1;
        fly(to, { name: name ?? "", commit: { ...again, tries: 1 } });
      },
    };
  }
}

/** All messages before this one are in their keys. */
function fromOf({ pending, writing, commits }: HostState, has: Has): number {
  const needed = [...pending, ...(has("fromFollowsAcknowledgements") ? writing : [])];
  return Math.min(commits.last + 1, ...needed.flatMap((one) => one?.oldest ?? []));
}

function sendCommit(state: ModelState, index: 0 | 1, shard: ShardNumber, has: Has): void {
  const host = state.hosts[index];
  const { value, epoch } = host.shards[shard];
  const from = fromOf(host, has);
  const { last: expects, number } = host.commits;
  host.commit = {
    ...{ tries: 1, number, expects, answer: null },
    ...{ shard, epoch, from, value: value + 1 },
  };
  state.left.commits -= 1;
  if (!has("repliesFollowCommits")) acknowledge(state, shard, value + 1);
  fly(state, { name: host.name ?? "", commit: { ...host.commit } });
}

/** The commit is in the journal: its change counts, and its call is answered. */
function committed(state: ModelState, index: 0 | 1, near: number, has: Has): void {
  const host = state.hosts[index];
  const { commit } = host;
  if (!commit) return;
  const messages = state.journals[host.name ?? ""]?.messages ?? [];
  const at = messages.find(({ number }) => number === commit.number)?.at ?? near;
  host.commits = { last: at, number: commit.number + 1 };
  host.commit = null;
  const { shard, value } = commit;
  host.shards[shard].value = value;
  host.pending[shard] = { value, oldest: host.pending[shard]?.oldest ?? at };
  if (has("repliesFollowCommits")) acknowledge(state, shard, value);
}

function acknowledge(state: ModelState, shard: ShardNumber, value: number): void {
  // An answer may be late, but no two calls are answered with the same value.
  if (state.answered[shard].includes(value)) state.fault = "two owners acknowledge";
  state.answered[shard] = [...state.answered[shard], value].sort();
  state.acknowledged[shard] = Math.max(value, state.acknowledged[shard]);
}

function* checkpointSteps(state: ModelState, index: 0 | 1, has: Has, without?: Rule): Generator<Step> {
  const { checkpoint, name, pending } = state.hosts[index];
  if (!checkpoint) {
    if (!pending.some(Boolean)) return;
    yield { step: `${name} writes a checkpoint`, apply: (to) => sendCheckpoint(to, index) };
    return;
  }
  const stored = state.checkpoints[name ?? ""];
  const isOwn = stored?.number === checkpoint.number;
  if (checkpoint.answer === "stored" || (checkpoint.answer === "refused" && isOwn)) {
    yield { step: `${name} has its checkpoint stored`, apply: (to) => checkpointed(to, index) };
  } else if (checkpoint.answer === "refused") {
    if (stored?.last === checkpoint.expects) return;
    yield { step: `${name} has lost its checkpoints`, apply: (to) => startAnew(to, index, without) };
  } else if (checkpoint.tries < TRIES && state.left.lost > 0) {
    yield {
      step: `${name} repeats its checkpoint`,
      apply(to) {
        const again = to.hosts[index].checkpoint;
        if (!again) return;
        again.tries += 1;
        to.left.lost -= 1;
        fly(to, { name: name ?? "", checkpoint: { ...again, tries: 1 } });
      },
    };
  }
}

function sendCheckpoint(state: ModelState, index: 0 | 1): void {
  const host = state.hosts[index];
  const { last: expects, number } = host.checkpoints;
  host.writing = host.pending;
  host.pending = [null, null];
  const values: [number, number] = [host.writing[0]?.value ?? 0, host.writing[1]?.value ?? 0];
  host.checkpoint = { ...{ tries: 1, number, expects, answer: null }, values };
  fly(state, { name: host.name ?? "", checkpoint: { ...host.checkpoint } });
}

function checkpointed(state: ModelState, index: 0 | 1): void {
  const host = state.hosts[index];
  const stored = state.checkpoints[host.name ?? ""];
  if (!host.checkpoint || !stored) return;
  host.checkpoints = { last: stored.last, number: host.checkpoint.number + 1 };
  host.checkpoint = null;
  host.writing = [null, null];
}

function fly(state: ModelState, flight: Flight): void {
  state.inFlight.push(flight);
  state.inFlight.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

/** Each write arrives at any time, or never; its answer may be lost. */
function* deliveries(state: ModelState, has: Has): Generator<Step> {
  for (const [position, flight] of state.inFlight.entries()) {
    const what = "commit" in flight ? "commit" : "checkpoint";
    for (const isLost of state.left.lost > 0 ? [false, true] : [false]) {
      yield {
        step: `a ${what} of ${flight.name} arrives${isLost ? ", its answer is lost" : ""}`,
        apply(to) {
          to.inFlight.splice(position, 1);
          const isStored = "commit" in flight ? storeCommit(to, flight, has) : storeCheckpoint(to, flight, has);
          const host = to.hosts.find(({ name }) => name === flight.name);
          const open = "commit" in flight ? host?.commit : host?.checkpoint;
          const sent = "commit" in flight ? flight.commit : flight.checkpoint;
          if (open?.number !== sent.number || isLost) return;
          // A host takes the first answer to a try; "stored" of an earlier try stands.
          if (open.answer !== "stored") open.answer = isStored ? "stored" : "refused";
        },
      };
    }
  }
}

function storeCommit(state: ModelState, { name, commit }: { name: string; commit: CommitTry }, has: Has): boolean {
  const journal = state.journals[name];
  const last = journal?.messages.at(-1)?.at ?? 0;
  if (!journal || (last !== commit.expects && has("commitsExpectTheLast"))) return false;
  const { number, shard, epoch, from, value } = commit;
  append(journal, { number, commit: { shard, epoch, from, value } });
  return true;
}

function storeCheckpoint(
  state: ModelState,
  { name, checkpoint }: { name: string; checkpoint: CheckpointTry },
  has: Has,
): boolean {
  const stored = state.checkpoints[name];
  const isSealed = stored?.number === null;
  const isExpected = stored?.last === checkpoint.expects;
  if (!stored || !(isExpected || (!isSealed && !has("checkpointsExpectTheLast")))) return false;
  stored.count += 1;
  Object.assign(stored, { last: stored.count, number: checkpoint.number });
  for (const shard of SHARD_NUMBERS) {
    const value = checkpoint.values[shard];
    if (value > 0) put(state, shard, value);
  }
  return true;
}

function put(state: ModelState, shard: ShardNumber, value: number): void {
  if (value < state.keys[shard]) state.fault = "a key goes back";
  state.keys[shard] = value;
}

/** The stream keeps the newest messages of each journal. */
function append(journal: ModelState["journals"][string], rest: Omit<Message, "at">): void {
  journal.count += 1;
  journal.messages = [...journal.messages, { at: journal.count, ...rest }].slice(-KEPT);
}

/** Every host that may answer reads answers one now: no reader may see less than was seen or acknowledged before. */
function readAll(state: ModelState, without?: Rule): void {
  for (const { name, shards, commit } of state.hosts) {
    if (name === null || (!lives(state, name) && without !== "readsNeedTheLease")) continue;
    for (const shard of SHARD_NUMBERS) {
      const { phase, value } = shards[shard];
      if (phase !== "open" || commit?.shard === shard) continue;
      if (value < Math.max(state.seen[shard], state.acknowledged[shard])) state.fault ??= "a read goes back";
      state.seen[shard] = Math.max(value, state.seen[shard]);
    }
  }
}

/** Follows the steps of these names from a state. */
export function follow(state: ModelState, steps: readonly string[], without?: Rule): ModelState {
  let at = state;
  for (const wanted of steps) {
    const found = [...stepsFrom(at, without)].find(({ step }) => step === wanted);
    if (!found) throw new Error(`Cannot follow the step "${wanted}"`);
    at = found.state;
  }
  return at;
}

export interface Search {
  states: number;
  fault: string | null;
  /** The shortest way to the fault. */
  steps: string[];
}

/** Explores every order of steps, the shortest first, until there is a fault. */
export function search(first: ModelState, without?: Rule): Search {
  const known = new Set([JSON.stringify(first)]);
  type Reached = { state: ModelState; step: string; before: Reached | null };
  let frontier: Reached[] = [{ state: first, step: "", before: null }];
  while (frontier.length > 0) {
    const next: Reached[] = [];
    for (const before of frontier) {
      for (const { step, state } of stepsFrom(before.state, without)) {
        const key = JSON.stringify(state);
        if (known.has(key)) continue;
        known.add(key);
        const reached = { state, step, before };
        if (state.fault === null) next.push(reached);
        else return { states: known.size, fault: state.fault, steps: wayTo(reached) };
      }
    }
    frontier = next;
  }
  return { states: known.size, fault: null, steps: [] };

  function wayTo(reached: Reached | null): string[] {
    return reached?.before ? [...wayTo(reached.before), reached.step] : [];
  }
}
