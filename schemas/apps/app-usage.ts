/** The contract of an account's stored agents: their number and bytes, with limits. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { ActorError } from "../errors.ts";
import { AppName } from "./app-names.ts";
import { AGENT_ROOM_BYTES } from "./limits.ts";

const Bytes = z.int().min(0);

/** Limits of an account by the caller's settings. */
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
     * Reserves this many bytes for an agent's log, in place of its earlier reservation. Refuses with `limit_reached`
     * when that is more than before and past a limit; less is always accepted.
     */
    hold: {
      input: z.object({
        /** The agent's key. */
        agent: z.string(),
        /** Bytes that the agent needs, and bytes that it would like, so that it need not ask at each record. */
        bytes: Bytes,
        wanted: Bytes,
        limits: AgentLimits,
      }),
      reply: z.object({ bytes: Bytes }),
    },
    /** Reports the bytes that an agent's inbox or its queue of outgoing webhooks stores. */
    stored: {
      input: z.object({ agent: z.string(), part: z.enum(["inbox", "outgoing"]), bytes: Bytes }),
    },
    /** Everything of an app was removed. */
    purged: { input: z.object({ app: AppName }) },
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
 * Whether the stored size differs enough from the reported one to report it again: by a quarter, or by a small
 * agent's whole size.
 */
export const isToBeTold = (bytes: number, told: number): boolean =>
  Math.abs(bytes - told) > Math.max(AGENT_ROOM_BYTES, told / 4) || (bytes === 0 && told > 0);
