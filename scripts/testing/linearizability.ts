/**
 * Checks whether a history of overlapping operations is linearizable: whether there is a sequential order in which
 * each operation takes effect between its start and its end. Uses the search of Wing and Gong (1993) with the memory
 * of Lowe (2017) for each key, like porcupine.
 */

/** An operation as its caller saw it. All times are from the same clock. */
export interface Operation<I, O> {
  /** Operations on different keys are independent. */
  key: string;
  input: I;
  startedAt: number;
  /**
   * Absent if the outcome is unknown. The operation then took effect at some time after its start, or it never takes
   * effect.
   */
  ended?: { at: number; output: O };
}

/** The behaviour of a key when no operations overlap. */
export interface SequentialModel<S, I, O> {
  initial: S;
  /**
   * Returns the state after the operation, or undefined if the operation cannot return this output in `state`. If
   * `output` is undefined, any output is possible.
   */
  step(state: S, input: I, output: O | undefined): S | undefined;
}

export interface Violation<S, I, O> {
  key: string;
  /** The state at the end of the longest valid order, and the number of operations in this order. */
  state: S;
  explained: number;
  /** Operations none of which can follow the longest valid order. */
  stuck: Operation<I, O>[];
}

/** Returns a violation for the first key whose operations have no valid order, or undefined if each key has one. */
export function findViolation<S extends string | number, I, O>(
  model: SequentialModel<S, I, O>,
  history: Iterable<Operation<I, O>>,
): Violation<S, I, O> | undefined {
  for (const [key, operations] of Map.groupBy(history, (operation) => operation.key)) {
    const violation = findViolationOfKey(model, operations);
    if (violation) return { key, ...violation };
  }
  return undefined;
}

/**
 * The start or the end of an operation, in a list that is ordered by time. A start refers to its end, so that both
 * can be removed together.
 */
interface Entry<I, O> extends Link<I, O> {
  operation: Operation<I, O>;
  at: number;
  end: Entry<I, O> | undefined;
  isEnd: boolean;
  /**
   * Two numbers of the operation that look random. The exclusive or of these numbers over a set of operations stands
   * for the set: two sets hardly ever have the same.
   */
  hash: readonly [number, number];
}

/** A node of the linked list. The head of the list is a node without an entry. */
interface Link<I, O> {
  previous: Link<I, O> | undefined;
  next: Entry<I, O> | undefined;
}

interface Step<S, I, O> {
  entry: Entry<I, O>;
  stateBefore: S;
}

function findViolationOfKey<S extends string | number, I, O>(
  model: SequentialModel<S, I, O>,
  operations: readonly Operation<I, O>[],
): Omit<Violation<S, I, O>, "key"> | undefined {
  const list = listByTime(operations);
  const steps: Step<S, I, O>[] = [];
  const seen = new Set<string>();
  const set: [number, number] = [0, 0];
  let state = model.initial;
  let left = operations.filter(({ ended }) => ended).length;
  let longest = { state, explained: 0, stuck: startsBeforeAnEnd(list.next) };
  let entry = list.next;

  while (left > 0) {
    if (entry && !entry.isEnd) {
      const { operation, hash } = entry;
      const next = model.step(state, operation.input, operation.ended?.output);
      const id = `${set[0] ^ hash[0]}.${set[1] ^ hash[1]}.${next}`;
      if (next === undefined || seen.has(id)) {
        entry = entry.next;
        continue;
      }
      seen.add(id);
      steps.push({ entry, stateBefore: state });
      toggle(entry, -1);
      takeOut(entry);
      state = next;
      entry = list.next;
      if (steps.length > longest.explained && left > 0) {
        longest = { state, explained: steps.length, stuck: startsBeforeAnEnd(entry) };
      }
      continue;
    }
    // The operation that ends here must already have taken effect, so an earlier choice was wrong. Undo the last
    // choice.
    const last = steps.pop();
    if (!last) return longest;
    state = last.stateBefore;
    putBack(last.entry);
    toggle(last.entry, 1);
    entry = last.entry.next;
  }
  return undefined;

  function toggle({ hash, operation }: Entry<I, O>, change: 1 | -1): void {
    set[0] ^= hash[0];
    set[1] ^= hash[1];
    if (operation.ended) left += change;
  }
}

/** Returns the head of the list. */
function listByTime<I, O>(operations: readonly Operation<I, O>[]): Link<I, O> {
  const entries: Entry<I, O>[] = [];
  for (const [index, operation] of operations.entries()) {
    const hash = [scramble(2 * index + 1), scramble(2 * index + 2)] as const;
    const links = { previous: undefined, next: undefined, hash, operation };
    const { ended } = operation;
    const end = ended && { ...links, at: ended.at, isEnd: true, end: undefined };
    entries.push({ ...links, at: operation.startedAt, isEnd: false, end });
    if (end) entries.push(end);
  }
  // Sorts starts before ends at the same time, because an operation that ends when another starts may have overlapped
  // it.
  entries.sort((a, b) => a.at - b.at || Number(a.isEnd) - Number(b.isEnd));
  const head: Link<I, O> = { previous: undefined, next: undefined };
  let last = head;
  for (const entry of entries) {
    entry.previous = last;
    last.next = entry;
    last = entry;
  }
  return head;
}

function takeOut<I, O>(entry: Entry<I, O>): void {
  for (const one of [entry, entry.end]) {
    if (one?.previous) one.previous.next = one.next;
    if (one?.next) one.next.previous = one.previous;
  }
}

/** Undoes the last `takeOut` that is not undone yet. */
function putBack<I, O>(entry: Entry<I, O>): void {
  for (const one of [entry.end, entry]) {
    if (one?.previous) one.previous.next = one;
    if (one?.next) one.next.previous = one;
  }
}

function startsBeforeAnEnd<I, O>(from: Entry<I, O> | undefined): Operation<I, O>[] {
  const starts: Operation<I, O>[] = [];
  for (let entry = from; entry && !entry.isEnd; entry = entry.next) starts.push(entry.operation);
  return starts;
}

// The finalizer of MurmurHash3 (public domain).
function scramble(value: number): number {
  let mixed = value >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
