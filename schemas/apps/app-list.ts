/** Messages of the actor that lists an account's apps. The key is the account's id. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { EpochMs } from "../values.ts";
import { AppName } from "./app-names.ts";

export const AppEntry = z.object({
  name: AppName,
  createdAt: EpochMs,
  updatedAt: EpochMs,
  serving: z.int().min(1).optional(),
});
export type AppEntry = z.infer<typeof AppEntry>;

const Nothing = z.object({});

export const appList = defineContract({
  kind: "app-list",
  messages: {
    /** Adds an app to the list before its first deploy or secret. Refuses with `limit_reached` past APPS_MAX. */
    admit: { input: z.object({ name: AppName }), reply: Nothing },
    removed: { input: z.object({ name: AppName }) },
    /**
     * Reports that the app was created or that another version serves. Adds the app if it is missing: `removed` of an
     * earlier app of the same name may arrive after `admit`. Earlier versions send no `createdAt`.
     */
    changed: {
      input: z.object({
        name: AppName,
        serving: z.int().min(1).optional(),
        at: EpochMs,
        createdAt: EpochMs.optional(),
      }),
    },
    list: {
      input: Nothing,
      reply: z.object({
        apps: z.array(AppEntry),
      }),
    },
  },
});
