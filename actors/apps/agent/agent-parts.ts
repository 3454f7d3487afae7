/** The dependencies that all agents of a host share. */
import type { Bus } from "../../runtime/bus/bus.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";
import type { Clock } from "../../runtime/lib/clock.ts";
import type { AppProcesses } from "../lib/app-host/app-processes.ts";
import type { Operations } from "../lib/app-host/operations.ts";
import type { HostStreams } from "../lib/app-process/host-streams.ts";
import type { BodyBlobs } from "../lib/app-process/process-bodies.ts";
import type { DeliveryPace } from "./delivery-pace.ts";

export interface AgentParts {
  bus: Bus;
  clock: Clock;
  actors: ActorClient;
  blobs: BodyBlobs;
  processes: AppProcesses;
  pace: DeliveryPace;
  operations: Operations;
  streams: HostStreams;
  /** Defaults to AGENT_IDLE_MS. */
  idleMs?: number | undefined;
}
