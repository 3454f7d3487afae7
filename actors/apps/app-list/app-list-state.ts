/** The stored list of an account's apps. */
import { z } from "zod";
import { AppEntry } from "../../../schemas/apps/app-list.ts";

export const AppListState = z.object({ apps: z.array(AppEntry) });
export type AppListState = z.infer<typeof AppListState>;
