/** Searches the model for an order of steps that violates an invariant. */
import type { ModelState, Rule } from "./state.ts";
import { keyOf } from "./state-key.ts";
import { stepsFrom } from "./steps.ts";

/** Applies the steps with these names, one after another, to a state. */
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

/** Explores all orders of steps breadth-first, until a step leads to a fault. */
export function search(first: ModelState, without?: Rule): Search {
  const known = new Set([keyOf(first)]);
  type Reached = { state: ModelState; step: string; before: Reached | null };
  let frontier: Reached[] = [{ state: first, step: "", before: null }];
  while (frontier.length > 0) {
    const next: Reached[] = [];
    for (const before of frontier) {
      for (const { step, state } of stepsFrom(before.state, without)) {
        const key = keyOf(state);
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
