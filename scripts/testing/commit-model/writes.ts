/**
 * The steps by which a host of the model commits and writes checkpoints, and by which the store receives these
 * writes.
 */
import {
  type CheckpointTry,
  type CommitTry,
  type Flight,
  type Has,
  type HostState,
  KEPT,
  type Message,
  type ModelState,
  type Rule,
  SHARD_NUMBERS,
  type ShardNumber,
  type Step,
  startAnew,
  TRIES,
} from "./state.ts";

export function* commitSteps(
  state: ModelState,
  index: 0 | 1,
  has: Has,
  without?: Rule,
): Generator<Step> {
  const host = state.hosts[index];
  const { commit, name } = host;
  if (!commit) {
    for (const shard of SHARD_NUMBERS) {
      if (host.shards[shard].phase !== "open" || state.left.commits === 0) continue;
      const needed = host.commits.last + 1 - fromOf(host, has);
      if (needed >= KEPT - 1 && has("commitsWaitForRoom")) continue;
      yield {
        step: `${name} commits to ${shard}`,
        apply: (to) => sendCommit(to, index, shard, has),
      };
    }
    return;
  }
  if (commit.answer === "stored") {
    yield {
      step: `${name} has its commit stored`,
      apply: (to) => committed(to, index, commit.expects, has),
    };
  } else if (commit.answer === "refused") {
    const last = state.journals[name ?? ""]?.messages.at(-1);
    const isOwn = last?.number === commit.number;
    if (isOwn)
      yield { step: `${name} finds its commit`, apply: (to) => committed(to, index, last.at, has) };
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

/** Returns the position from which a takeover must read. The keys hold all commits before this position. */
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

/** Handles a commit that the journal has stored: applies the change to the host's value and answers the call. */
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
  // A response may be late, but two calls must never be answered with the same value.
  if (state.answered[shard].includes(value)) state.fault = "two owners acknowledge";
  state.answered[shard] = [...state.answered[shard], value].sort();
  state.acknowledged[shard] = Math.max(value, state.acknowledged[shard]);
}

export function* checkpointSteps(state: ModelState, index: 0 | 1, without?: Rule): Generator<Step> {
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
    yield {
      step: `${name} has lost its checkpoints`,
      apply: (to) => startAnew(to, index, without),
    };
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

/**
 * The steps in which the store receives a write in flight. A write can arrive at any time or never, and its response
 * can be lost.
 */
export function* deliveries(state: ModelState, has: Has): Generator<Step> {
  for (const [position, flight] of state.inFlight.entries()) {
    const what = "commit" in flight ? "commit" : "checkpoint";
    for (const isLost of state.left.lost > 0 ? [false, true] : [false]) {
      yield {
        step: `a ${what} of ${flight.name} arrives${isLost ? ", its answer is lost" : ""}`,
        apply(to) {
          to.inFlight.splice(position, 1);
          const isStored =
            "commit" in flight ? storeCommit(to, flight, has) : storeCheckpoint(to, flight, has);
          const host = to.hosts.find(({ name }) => name === flight.name);
          const open = "commit" in flight ? host?.commit : host?.checkpoint;
          const sent = "commit" in flight ? flight.commit : flight.checkpoint;
          if (open?.number !== sent.number || isLost) return;
          // The host uses the first response to a try. "stored", also from an earlier try, is final.
          if (open.answer !== "stored") open.answer = isStored ? "stored" : "refused";
        },
      };
    }
  }
}

function storeCommit(
  state: ModelState,
  { name, commit }: { name: string; commit: CommitTry },
  has: Has,
): boolean {
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

export function put(state: ModelState, shard: ShardNumber, value: number): void {
  if (value < state.keys[shard]) state.fault = "a key goes back";
  state.keys[shard] = value;
}

/** Appends a message to a journal. The stream keeps only the newest messages of each journal. */
export function append(journal: ModelState["journals"][string], rest: Omit<Message, "at">): void {
  journal.count += 1;
  journal.messages = [...journal.messages, { at: journal.count, ...rest }].slice(-KEPT);
}
