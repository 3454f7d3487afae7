/** What a host needs to start a process that runs app code. `actors/apps/process/arguments.ts` provides it. */

import type { ServingApp } from "../../../../schemas/apps/app.ts";
import type { StartProcess } from "../../../../schemas/apps/app-process.ts";
import {
  AGENT_DATABASE_BYTES_MAX,
  AGENT_TURN_MS_MAX,
  AGENT_WORK_MS_MAX,
  APP_ANSWER_BYTES_MAX,
} from "../../../../schemas/apps/limits.ts";
import type { ProcessArguments, ProcessFolders } from "../../process/arguments.ts";

/**
 * Events of one record run without a pause for this long at most, so that they delay other agents of the app no
 * longer than one event does.
 */
const DELIVERIES_UNRECORDED_MS_MAX = 100;

export type ProcessProgram = (folders: ProcessFolders) => ProcessArguments;

export interface ProcessStart {
  serving: ServingApp;
  /** The script of the app. */
  bundle: Uint8Array;
  /** Vars and secrets by name. */
  values: Record<string, unknown>;
}

/** The exports of an app's module. */
export interface Exported {
  /** Names of the classes that extend Agent. */
  classes: readonly string[];
  hasDefault: boolean;
}

/** The first message to a process. */
export function startOf(
  { serving: { config }, values }: Pick<ProcessStart, "serving" | "values">,
  { bundle, workFolder }: Pick<StartProcess, "bundle" | "workFolder">,
): StartProcess {
  return {
    type: "start",
    bundle,
    workFolder,
    env: {
      values,
      agents: config.agents.map(({ binding, class_name: className }) => ({ binding, className })),
      artifacts: config.artifacts,
      browser: config.browser?.binding,
    },
    compatibilityDate: config.compatibility_date,
    limits: {
      databaseBytes: AGENT_DATABASE_BYTES_MAX,
      answerBytes: APP_ANSWER_BYTES_MAX,
      turnMs: AGENT_TURN_MS_MAX,
      workMs: AGENT_WORK_MS_MAX,
      togetherMs: DELIVERIES_UNRECORDED_MS_MAX,
    },
  };
}
