/**
 * Limits how many operations of one app's process run at the same time. Further operations wait.
 *
 * A call of an agent holds its place until that agent answers. The agent may run in the same process, and may need a
 * place for an operation of its own before it answers. So calls of agents have places of their own: those of the app's
 * entry, and those of other agents. Otherwise 64 requests that reach agents would keep these agents from fetching.
 */
import type { AgentAddress } from "../../../../schemas/apps/app-names.ts";
import type { Operation } from "../../../../schemas/apps/app-process.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";

/**
 * Limit of the concurrent operations of each sort: calls of agents by the app's entry, calls of agents by agents, and
 * all others. Calls of agents by the 100 processes of a host are at most 12,800. So they stay below CLIENT_CALLS_MAX,
 * which the host needs for other calls too.
 */
export const APP_OPERATIONS_MAX = 64;
/**
 * Time for which an agent's call waits for a place. It is shorter than the time of a turn: if all places are held by
 * agents that wait for such calls, the refusal ends their wait.
 */
export const AGENT_CALL_WAITS_MS_MAX = 10_000;

export class OperationPlaces {
  readonly #others = new Semaphore(APP_OPERATIONS_MAX);
  readonly #ofEntry = new Semaphore(APP_OPERATIONS_MAX);
  readonly #ofAgents = new Semaphore(APP_OPERATIONS_MAX);

  /**
   * Runs an operation when it has a place. `address` is the agent whose code asked for it; undefined for the app's
   * entry. Rejects with `busy` if an agent's call of an agent waits for too long.
   */
  run<T>(
    { type }: Operation,
    perform: () => Promise<T>,
    { address, clock }: { address: AgentAddress | undefined; clock: Clock },
  ): Promise<T> {
    // Reading a part of an answer waits for the code of another agent, and holds no place.
    if (type === "read") return perform();
    if (!isAgentCall(type)) return this.#others.run(perform);
    return address ? this.#runOfAgent(perform, clock) : this.#ofEntry.run(perform);
  }

  async #runOfAgent<T>(perform: () => Promise<T>, clock: Clock): Promise<T> {
    const places = this.#ofAgents;
    if (places.free > 0) return places.run(perform);
    const tooLong = new AbortController();
    const entered = new AbortController();
    void clock.wait(AGENT_CALL_WAITS_MS_MAX, entered.signal).then(() => {
      const text = `Cannot call: ${APP_OPERATIONS_MAX} calls of the app's agents by agents are under way`;
      tooLong.abort(new ActorError("busy", text, { retryAfterS: 1 }));
    });
    const release = await places.take(tooLong.signal);
    entered.abort();
    try {
      return await perform();
    } finally {
      release();
    }
  }
}

export const isAgentCall = (type: Operation["type"]) =>
  type === "agent.request" || type === "agent.invoke";
