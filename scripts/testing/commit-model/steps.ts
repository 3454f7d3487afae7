/** All steps of the model: this file has the steps of leases and shards, writes.ts those of writes. */
import {
  away,
  copyOf,
  end,
  type Has,
  lives,
  type ModelState,
  type Rule,
  remove,
  SHARD_NUMBERS,
  type ShardNumber,
  type Source,
  type Step,
  startAnew,
} from "./state.ts";
import { append, checkpointSteps, commitSteps, deliveries, put } from "./writes.ts";

/** Returns each state that can follow after one step, with the name of the step. */
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

function* changesOf(state: ModelState, has: Has, without?: Rule): Generator<Step> {
  for (const index of [0, 1] as const) {
    const host = state.hosts[index];
    if (host.name === null) continue;
    const { name } = host;
    if (lives(state, name)) {
      if (state.left.deaths > 0)
        yield { step: `the lease of ${name} ends`, apply: (to) => end(to, name) };
    } else yield { step: `${name} goes on anew`, apply: (to) => startAnew(to, index, without) };
    for (const shard of SHARD_NUMBERS) yield* placementSteps(state, index, shard, has);
    yield* commitSteps(state, index, has, without);
    yield* checkpointSteps(state, index, without);
  }
  yield* deliveries(state, has);
  for (const name of Object.keys(state.journals)) {
    const isNamed = state.epochs.some(({ owner, from }) => owner === name || from?.[0] === name);
    const isEmpty = state.journals[name]?.messages.length === 0;
    if (lives(state, name) || isNamed || isEmpty) continue;
    yield { step: `the journal of ${name} is removed`, apply: (to) => remove(to, name) };
  }
}

function* placementSteps(
  state: ModelState,
  index: 0 | 1,
  shard: ShardNumber,
  has: Has,
): Generator<Step> {
  const host = state.hosts[index];
  const { phase } = host.shards[shard];
  const name = host.name ?? "";
  const step = (what: string, apply: Step["apply"]) => ({
    step: `${name} ${what} ${shard}`,
    apply,
  });
  const { owner, at } = state.epochs[shard];
  if (phase === "away") {
    const isFree =
      owner === null || owner === name || !lives(state, owner) || !has("leasesAreChecked");
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

/** Performs the next step of a shard that its host takes over or gives back. */
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
    if (isOwner && held.value < state.acknowledged[shard])
      state.fault = "an acknowledged change is lost";
  } else if (held.phase === "leave") {
    write(null, null);
    shards[shard] = away();
  }
}

/** Returns the newest value for the shard in the journal before the seal, as a takeover reads it. */
function replayed(
  state: ModelState,
  shard: ShardNumber,
  from: Source | null,
  has: Has,
): number | undefined {
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

/**
 * Lets each host that may answer reads answer one now. A read must not return an older value than one that was read
 * or acknowledged before.
 */
function readAll(state: ModelState, without?: Rule): void {
  for (const { name, shards, commit } of state.hosts) {
    if (name === null || (!lives(state, name) && without !== "readsNeedTheLease")) continue;
    for (const shard of SHARD_NUMBERS) {
      const { phase, value } = shards[shard];
      if (phase !== "open" || commit?.shard === shard) continue;
      if (value < Math.max(state.seen[shard], state.acknowledged[shard]))
        state.fault ??= "a read goes back";
      state.seen[shard] = Math.max(value, state.seen[shard]);
    }
  }
}
