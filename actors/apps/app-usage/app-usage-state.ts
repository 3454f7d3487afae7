/** The stored usage of an account's agents: sums for each app, and the bytes of each agent in rows. */
import { z } from "zod";
import { EpochMs, Id } from "../../../schemas/values.ts";

export const AppUsageState = z.object({
  /** Sums by app name. */
  apps: z.record(z.string(), z.object({ agents: z.int().min(0), bytes: z.int().min(0) })),
  /** Ids of the apps that were purged last, with the time, the oldest first. */
  purged: z.array(z.object({ id: Id, at: EpochMs })).optional(),
});
export type AppUsageState = z.infer<typeof AppUsageState>;

/** Bytes of an agent in three parts: its log, its inbox and its queue of outgoing webhooks. */
export const AgentBytes = z.tuple([z.int().min(0), z.int().min(0), z.int().min(0)]);
export type AgentBytes = z.infer<typeof AgentBytes>;

/** Row `<app>/<number>`: a part of the app's agents, chosen by a hash of their keys. */
export const AppUsageRow = z.object({ agents: z.record(z.string(), AgentBytes) });
export type AppUsageRow = z.infer<typeof AppUsageRow>;
