/** Opens the actor kinds and app processes that a host needs to run agents. */
import type { Logger } from "pino";
import type { AgentLimits } from "../../schemas/apps/app-usage.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { answerOn } from "../runtime/bus/answer.ts";
import type { Bus } from "../runtime/bus/bus.ts";
import { BusLiveUpdates } from "../runtime/bus/live.ts";
import { BusActorClient } from "../runtime/calls/actor-client.ts";
import type { AnyHostedDefinition } from "../runtime/kinds/define-hosted.ts";
import type { Clock } from "../runtime/lib/clock.ts";
import { BlobStore } from "../runtime/store/blob-store.ts";
import { agentKind } from "./agent/agent.ts";
import { DeliveryPace } from "./agent/delivery-pace.ts";
import { writersOf } from "./agent/shared-writes.ts";
import { appEntryKind } from "./app-entry/app-entry.ts";
import { AppFetch } from "./lib/app-host/app-fetch.ts";
import { AppLog } from "./lib/app-host/app-log.ts";
import { AppProcesses } from "./lib/app-host/app-processes.ts";
import { AppUsers, whyOneUser } from "./lib/app-host/app-user.ts";
import { endedWithHost, whyNotEnded } from "./lib/app-host/ended-with-host.ts";
import { FollowedApps } from "./lib/app-host/followed-apps.ts";
import { Operations } from "./lib/app-host/operations.ts";
import { openProcessFolder } from "./lib/app-host/process-folders.ts";
import { HostStreams } from "./lib/app-process/host-streams.ts";
import type { ProcessProgram } from "./lib/app-process/process-program.ts";
import type { SecretBox } from "./lib/app-secrets/secret-box.ts";

interface OpenAgentsParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  guard: EgressGuard;
  secrets: SecretBox;
  program: ProcessProgram;
  /** Limits of the agents of one account. */
  limits: AgentLimits;
  /** See AppProcesses. */
  processesMax?: number | undefined;
  agentsMax?: number | undefined;
  idleMs?: number | undefined;
  /** Defaults to AGENT_IDLE_MS. */
  agentIdleMs?: number | undefined;
}

export interface OpenAgents {
  definitions: readonly AnyHostedDefinition[];
  processes: AppProcesses;
  /** Ends all app processes. Call it after the actor kinds have closed. */
  close(): Promise<void>;
}

export async function openAgents(parts: OpenAgentsParts): Promise<OpenAgents> {
  const { bus, clock, logger, guard, secrets, limits, agentIdleMs, ...ofProcesses } = parts;
  const { processesMax, agentsMax, idleMs } = ofProcesses;
  const folder = await openProcessFolder();
  const program = await programHere(parts);
  const { main } = program({ bundleFolder: folder.path, workFolder: folder.path });
  const reason = await whyOneUser([process.execPath, main]);
  if (reason !== undefined) {
    logger.warn(
      { reason },
      "all app processes run as one user, which weakens their isolation: start as root to give each its own",
    );
  }
  const users = new AppUsers({ isPossible: reason === undefined });
  const actors = new BusActorClient(bus, clock);
  const blobs = new BlobStore(bus, clock);
  const fetch = new AppFetch({ guard });
  const streams = new HostStreams({
    answerOn: (...question) => answerOn({ bus, logger }, ...question),
    clock,
  });
  const operations = new Operations({
    ...{ bus, clock, actors, blobs, fetch, secrets, streams, limits },
  });
  const processes = new AppProcesses({
    ...{
      clock,
      logger,
      blobs,
      secrets,
      operations,
      streams,
      program,
      users,
      folder,
      processesMax,
      agentsMax,
      idleMs,
    },
    serving: new FollowedApps({ actors, live: new BusLiveUpdates(bus), clock }),
    log: new AppLog(bus, clock),
  });
  const writesTo = writersOf(bus, clock);
  const pace = new DeliveryPace(clock);
  const shared = {
    bus,
    clock,
    actors,
    blobs,
    processes,
    pace,
    operations,
    streams,
    writesTo,
    limits,
    idleMs: agentIdleMs,
  };
  return {
    definitions: [agentKind(shared), appEntryKind(shared)],
    processes,
    async close() {
      await processes.stop();
      streams.close();
      fetch.close();
    },
  };
}

/** Returns the program, changed so that its processes end with this process, if the system supports that. */
async function programHere({ program, logger }: OpenAgentsParts): Promise<ProcessProgram> {
  const reason = await whyNotEnded();
  if (reason === undefined) return endedWithHost(program);
  logger.warn({ reason }, "app processes may keep running after this process is killed");
  return program;
}
