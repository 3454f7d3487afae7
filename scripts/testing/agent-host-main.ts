/**
 * A process that hosts agents and the kinds that agents need, for tests that kill it: `node agent-host-main.ts <url>
 * <name> <key>`.
 */
import { once } from "node:events";
import pino from "pino";
import { agentAlarmActor } from "../../actors/apps/agent-alarm/agent-alarm.ts";
import { appActor } from "../../actors/apps/app/app.ts";
import { appUsageActor } from "../../actors/apps/app-usage/app-usage.ts";
import { SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { openAgents } from "../../actors/apps/open-agents.ts";
import { processArguments } from "../../actors/apps/process/arguments.ts";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { createEgressGuard } from "../../actors/egress/egress-guard.ts";
import { ActorHost } from "../../actors/runtime/actor-host.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../actors/runtime/observe/service-counts.ts";
import { AGENT_BYTES_PER_ACCOUNT, AGENTS_PER_ACCOUNT } from "../../schemas/apps/limits.ts";

const READY_POLL_MS = 5;

const [url = "", hostName = "", secretKey = ""] = process.argv.slice(2);
const asked = once(process, "SIGTERM");
const bus = await Bus.connect({ url, name: hostName });
const logger = pino({ level: "debug" }, pino.destination({ dest: 2, sync: true }));
const agents = await openAgents({
  ...{ bus, clock, logger },
  guard: createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.0/8"] }) }),
  secrets: new SecretBox([secretKey]),
  program: processArguments,
  limits: { agents: AGENTS_PER_ACCOUNT, bytes: AGENT_BYTES_PER_ACCOUNT },
});
const host = new ActorHost({
  ...{ bus, clock, logger, hostName },
  definitions: [appActor, agentAlarmActor, appUsageActor],
  hosted: agents.definitions,
  buckets: 1,
  counts: new ServiceCounts(new Map()),
});
await host.start();
void (async () => {
  while (!host.placement.isComplete) await clock.wait(READY_POLL_MS);
  console.log("ready");
})();
await asked;
await host.stop();
await agents.close();
await bus.close();
process.exit();
