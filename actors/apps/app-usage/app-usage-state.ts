/** The stored usage of an account's agents: sums for each app, and each agent's parts in rows. */
import { z } from "zod";

export const AppUsageState = z.object({
  /** Sums by app name. */
  apps: z.record(z.string(), z.object({ agents: z.int().min(0), bytes: z.int().min(0) })),
});
export type AppUsageState = z.infer<typeof AppUsageState>;

/** Bytes of an agent: of its log, its inbox and its queue of outgoing webhooks. */
export const AgentBytes = z.tuple([z.int().min(0), z.int().min(0), z.int().min(0)]);
export type AgentBytes = z.infer<typeof AgentBytes>;

/** `<app>/<number>`: some of the app's agents, by a hash of their keys. */
export const AppUsageRow = z.object({ agents: z.record(z.string(), AgentBytes) });
export type AppUsageRow = z.infer<typeof AppUsageRow>;
