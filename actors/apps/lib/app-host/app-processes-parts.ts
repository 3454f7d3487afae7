/** The dependencies that the app processes of one host share. */
import type { Logger } from "pino";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { HostStreams } from "../app-process/host-streams.ts";
import type { ProcessProgram } from "../app-process/process-program.ts";
import type { SecretBox } from "../app-secrets/secret-box.ts";
import type { AppLog } from "./app-log.ts";
import type { AppUsers } from "./app-user.ts";
import type { FollowedApps } from "./followed-apps.ts";
import type { Operations } from "./operations.ts";
import type { ProcessFolder } from "./process-folders.ts";

export interface AppProcessesParts {
  clock: Clock;
  logger: Logger;
  serving: FollowedApps;
  blobs: Pick<BlobStore, "get">;
  secrets: Pick<SecretBox, "open">;
  log: AppLog;
  operations: Operations;
  streams: HostStreams;
  program: ProcessProgram;
  users: AppUsers;
  /**
   * The parent folder of all process folders, on a file system in memory if there is one. AppProcesses creates it
   * again if it is missing, and removes it at the end.
   */
  folder: ProcessFolder;
  /** Defaults to APP_PROCESSES_MAX. */
  processesMax?: number | undefined;
  /** Limit of the agents that are open in one process. Defaults to the number that the limit of open files allows. */
  agentsMax?: number | undefined;
  /** Defaults to APP_PROCESS_IDLE_MS. */
  idleMs?: number | undefined;
}
