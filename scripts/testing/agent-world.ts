/** Starts hosts of agents on a private bus, and deploys the apps of a test. */
import pino from "pino";
import { agentAlarmActor } from "../../actors/apps/agent-alarm/agent-alarm.ts";
import { agentInboxActor } from "../../actors/apps/agent-inbox/agent-inbox.ts";
import { appActor } from "../../actors/apps/app/app.ts";
import { appUsageActor } from "../../actors/apps/app-usage/app-usage.ts";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { type OpenAgents, openAgents } from "../../actors/apps/open-agents.ts";
import { processArguments } from "../../actors/apps/process/arguments.ts";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { createEgressGuard, type EgressGuard } from "../../actors/egress/egress-guard.ts";
import type { ActorHost } from "../../actors/runtime/actor-host.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { appEntry } from "../../schemas/apps/agent.ts";
import { app } from "../../schemas/apps/app.ts";
import { AppConfig } from "../../schemas/apps/app-config.ts";
import { agentKey, appKey } from "../../schemas/apps/app-names.ts";
import { appPurge } from "../../schemas/apps/app-purge.ts";
import type { AgentLimits } from "../../schemas/apps/app-usage.ts";
import { AGENT_BYTES_PER_ACCOUNT, AGENTS_PER_ACCOUNT } from "../../schemas/apps/limits.ts";
import { type LogLine, startWorld, type World } from "./actor-world.ts";

export const ACCOUNT = "a".repeat(32);

/** The secrets key that this process shares with hosts in other processes. */
export const SECRETS_KEY = newSecretKey();

/** The default limits, which a test can override. */
export const AGENT_LIMITS: AgentLimits = {
  agents: AGENTS_PER_ACCOUNT,
  bytes: AGENT_BYTES_PER_ACCOUNT,
};

/**
 * The deadline of a call. The call may have to wait until an app process has started, while other processes start on
 * the same machine.
 */
const CALL_MS = 60_000;

type PartialAppConfig = Partial<Parameters<typeof AppConfig.parse>[0] & object>;

export interface AgentWorldOptions {
  /** Added to the kinds of apps. A definition takes the place of the one of the same kind. */
  definitions?: readonly AnyActorDefinition[];
}

export async function startAgentWorld(options: AgentWorldOptions = {}): Promise<AgentWorld> {
  const given = options.definitions ?? [];
  const kinds = new Map(
    [appActor, agentAlarmActor, agentInboxActor, appUsageActor, ...given].map((definition) => [
      definition.contract.kind,
      definition,
    ]),
  );
  const definitions = [...kinds.values()];
  return new AgentWorld(await startWorld({ definitions, tasks: [appPurge] }));
}

export interface AgentHost {
  host: ActorHost;
  agents: OpenAgents;
  /** Stops the host, which hands over its shards, and ends the app processes. */
  stop(): Promise<void>;
}

export class AgentWorld implements AsyncDisposable {
  readonly world: World;
  readonly client: Pick<ActorClient, "call" | "send">;
  readonly secrets = new SecretBox([SECRETS_KEY]);
  readonly log: LogLine[] = [];
  readonly #hosts: AgentHost[] = [];

  constructor(world: World) {
    this.world = world;
    const { client } = world;
    this.client = {
      call: (contract, key, message, input, options) =>
        client.call(contract, key, message, input, { deadlineMs: CALL_MS, ...options }),
      send: client.send.bind(client),
    };
  }

  /** Starts a host of agents. By default, apps may connect to this machine. */
  async host(
    name = "host",
    {
      guard = createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.0/8"] }) }),
      limits = AGENT_LIMITS,
      clock = systemClock,
      program = processArguments,
      ...processes
    }: {
      guard?: EgressGuard;
      limits?: AgentLimits;
      /** The clock of the agents and their processes. */
      clock?: Clock;
      program?: typeof processArguments;
      processesMax?: number;
      agentsMax?: number;
      idleMs?: number;
      agentIdleMs?: number;
    } = {},
  ): Promise<AgentHost> {
    const bus = await Bus.connect({ url: this.world.url, name });
    const logger = pino({}, { write: (line) => void this.log.push(JSON.parse(line) as LogLine) });
    const agents = await openAgents({
      ...{ bus, clock, logger, guard },
      secrets: this.secrets,
      program,
      limits,
      ...processes,
    });
    const host = await this.world.host({ name, hosted: agents.definitions });
    let stopping: Promise<void> | undefined;
    const stop = async () => {
      await host.stop();
      await agents.close();
      await bus.close();
    };
    const started = {
      host,
      agents,
      stop() {
        stopping ??= stop();
        return stopping;
      },
    };
    this.#hosts.push(started);
    return started;
  }

  /** Stores a version of the app and activates it, as a deploy does. */
  async deploy(
    name: string,
    code: string,
    config: PartialAppConfig = {},
    account = ACCOUNT,
  ): Promise<string> {
    const key = appKey(account, name);
    const version = await this.#stage(key, name, code, config);
    await this.client.call(app, key, "activate", { version });
    return key;
  }

  /** Stores a version of the app and starts it for a check, as a deploy does before it activates the version. */
  async check(name: string, code: string, config: PartialAppConfig = {}): Promise<unknown> {
    const key = appKey(ACCOUNT, name);
    const version = await this.#stage(key, name, code, config);
    return this.client.call(appEntry, key, "check", { version });
  }

  async #stage(key: string, name: string, code: string, config: PartialAppConfig): Promise<number> {
    const bundle = `app.${key}.bundle.${Math.random().toString(36).slice(2)}`;
    await new BlobStore(this.world.bus, systemClock).put(bundle, Buffer.from(code));
    const { version } = await this.client.call(app, key, "stage", {
      config: AppConfig.parse({ name, compatibility_date: "2026-11-20", ...config }),
      bundle,
      bundleBytes: code.length,
    });
    return version;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { stop } of this.#hosts.reverse()) await stop();
    await this.world[Symbol.asyncDispose]();
  }
}

export const keyOf = (app: string, className: string, name: string) =>
  agentKey({ accountId: ACCOUNT, app, className, name });
