/**
 * Messages of the actor that counts an account's stored agents and their bytes, and enforces limits. The key is the
 * account's id.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { ActorError } from "../errors.ts";
import { Id } from "../values.ts";
import { AppName } from "./app-names.ts";
import { AGENT_ROOM_BYTES } from "./limits.ts";

const Bytes = z.int().min(0);

/** Limits of one account, from the settings of the process that calls this actor. */
export const AgentLimits = z.object({
  agents: z.int().min(1),
  /** 0 is no limit. */
  bytes: Bytes,
});
export type AgentLimits = z.infer<typeof AgentLimits>;

const Counted = z.object({ agents: z.int().min(0), bytes: Bytes });

export const appUsage = defineContract({
  kind: "app-usage",
  messages: {
    /**
     * Reserves this number of bytes for an agent's log. This replaces the agent's earlier reservation. Refuses with
     * `limit_reached` if the number is larger than before and exceeds a limit. A smaller number is always accepted.
     */
    hold: {
      input: z.object({
        /** The agent's key. */
        agent: z.string(),
        /**
         * `bytes`: the bytes that the agent needs. `wanted`: the larger number that it requests, so that not every
         * record needs a call.
         */
        bytes: Bytes,
        wanted: Bytes,
        limits: AgentLimits,
        /** The app's id. Refuses with `not_found` if the app with this id was purged. Earlier versions send no id. */
        appId: Id.optional(),
      }),
      reply: z.object({ bytes: Bytes }),
    },
    /** Reports the bytes that an agent's inbox or its queue of outgoing webhooks stores: see `countedBytes`. */
    stored: {
      input: z.object({ agent: z.string(), part: z.enum(["inbox", "outgoing"]), bytes: Bytes }),
    },
    /**
     * Removes the counts of an app, because all of its data was deleted. An agent of the app with this id may still
     * finish a turn, and can reserve nothing from now on. Earlier versions send no id.
     */
    purged: { input: z.object({ app: AppName, id: Id.optional() }) },
    get: {
      input: z.object({}),
      reply: Counted.extend({ apps: z.array(Counted.extend({ name: AppName })) }),
    },
  },
});

/** The refusal of more data. */
export const noRoom = (limit: number) =>
  new ActorError(
    "limit_reached",
    `Cannot store: the account's agents store ${limit} bytes, which is the limit (TRUNKLINE_AGENT_BYTES_PER_ACCOUNT)`,
  );

/**
 * Returns whether the stored size must be reported again. It must if it differs from the reported size by more than a
 * quarter and more than AGENT_ROOM_BYTES. It also must if the first bytes are stored, or nothing is stored any more.
 */
export const isToBeTold = (bytes: number, told: number): boolean =>
  Math.abs(bytes - told) > Math.max(AGENT_ROOM_BYTES, told / 4) || (bytes === 0) !== (told === 0);

/**
 * Returns the size that an inbox or a queue reports. The smallest one counts as much as the smallest agent: its keys and
 * rows take room too, and an account can have a limited number of them.
 */
export const countedBytes = (bytes: number): number =>
  bytes === 0 ? 0 : Math.max(bytes, AGENT_ROOM_BYTES);
