/**
 * The part of the account's storage that is reserved for an agent's log. More than needed is reserved, so that few
 * records wait for a reservation.
 */

import type { AgentAddress } from "../../../schemas/apps/app-names.ts";
import { type AgentLimits, appUsage } from "../../../schemas/apps/app-usage.ts";
import { AGENT_ROOM_BYTES } from "../../../schemas/apps/limits.ts";
import { ActorError, type ErrorCode } from "../../../schemas/errors.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";

/** A growing agent reserves the bytes that it needs, times this factor. */
const AHEAD = 1.25;
/**
 * An agent that needs less than this share of its reservation releases the rest. A log shrinks with each image and
 * grows again.
 */
const SLACK = 0.25;

export class AgentRoom {
  readonly #actors: Pick<ActorClient, "call">;
  readonly #limits: AgentLimits;
  readonly #agent: string;
  readonly #accountId: string;
  readonly #appId: string | undefined;
  #held = 0;
  /** Whether the account counts bytes of this agent. */
  #isCounted = false;

  constructor(
    actors: Pick<ActorClient, "call">,
    limits: AgentLimits,
    of: Pick<AgentAddress, "accountId"> & { key: string; appId?: string | undefined },
  ) {
    this.#actors = actors;
    this.#limits = limits;
    this.#agent = of.key;
    this.#accountId = of.accountId;
    this.#appId = of.appId;
  }

  /** Bytes that the account has reserved for the agent. The log states them. */
  get held(): number {
    return this.#held;
  }

  /** Whether the account counts bytes of this agent. */
  get isCounted(): boolean {
    return this.#isCounted;
  }

  /**
   * Continues with the reservation that the log states. For a log without data, it is unknown whether the former owner
   * has released the reservation, so the first record reserves anew.
   */
  resume(stated: number, isBlank: boolean): void {
    this.#held = isBlank ? 0 : stated;
    this.#isCounted = stated > 0;
  }

  /** Resolves when the log may take this many bytes. Rejects with `limit_reached`, `not_found` or a temporary error. */
  async hold(bytes: number): Promise<void> {
    const wanted = Math.ceil((AHEAD * bytes) / AGENT_ROOM_BYTES) * AGENT_ROOM_BYTES;
    const isTooMuch = this.#held > AGENT_ROOM_BYTES && bytes < SLACK * this.#held;
    if (bytes <= this.#held && !isTooMuch) return;
    await this.#ask(bytes, wanted);
  }

  /** Releases the reservation of an agent that stores nothing any more. */
  async letGo(): Promise<void> {
    if (this.#isCounted) await this.#ask(0, 0);
  }

  async #ask(bytes: number, wanted: number): Promise<void> {
    const appId = this.#appId;
    const input = { agent: this.#agent, bytes, wanted, limits: this.#limits };
    const { isCounted } = this;
    // If the answer is lost, the account may have counted.
    this.#isCounted = true;
    const counting = this.#actors.call(appUsage, this.#accountId, "hold", {
      ...input,
      ...(appId !== undefined && { appId }),
    });
    const given = await counting.catch((error: unknown) => {
      if (error instanceof ActorError && isNotCounted(error.code)) this.#isCounted = isCounted;
      throw error;
    });
    this.#held = given.bytes;
    this.#isCounted = given.bytes > 0;
  }
}

/** Returns whether the account has counted nothing when it refuses with this code. */
const isNotCounted = (code: ErrorCode) => code === "limit_reached" || code === "not_found";
