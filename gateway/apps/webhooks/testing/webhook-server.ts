/**
 * A server with one app that declares endpoints, with real inboxes, and with an agent that remembers the events it
 * received.
 */
import { pino } from "pino";
import { agentInboxActor } from "../../../../actors/apps/agent-inbox/agent-inbox.ts";
import { answeringAgent } from "../../../../actors/apps/agent-inbox/testing/answering-agent.ts";
import { appUsageActor } from "../../../../actors/apps/app-usage/app-usage.ts";
import type { AgentDelivery } from "../../../../schemas/apps/agent.ts";
import { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { type MemoryActors, memoryActors } from "../../../../scripts/testing/memory-actors.ts";
import type { ByteBudget } from "../../../http/byte-budget.ts";
import { MemoryBlobs } from "../../../testing/memory-blobs.ts";
import { AccountRoom } from "../../account-room.ts";
import { endpointOf, webhookEndpoints } from "../declared-endpoint.ts";

export const HOOK_ACCOUNT = "a".repeat(32);

export interface Delivered {
  key: string;
  delivery: AgentDelivery;
}

export interface WebhookServer extends AsyncDisposable {
  url: string;
  actors: MemoryActors;
  delivered: Delivered[];
  blobs: MemoryBlobs;
  clock: { now: number };
}

/**
 * Starts the server. `waiting`: the number of events that already wait in every inbox, the first of which is being
 * delivered. `x-account` in a request names another account with the same app. `bytesMax`: the limit of bytes for the account's agents.
 */
export async function webhookServer(
  webhooks: unknown[],
  secrets: Record<string, string>,
  {
    waiting = 0,
    bytesMax = 0,
    deliveries,
    budget,
  }: {
    waiting?: number;
    bytesMax?: number;
    deliveries?: { keep_days?: number; keep_count?: number };
    budget?: ByteBudget;
  } = {},
): Promise<WebhookServer> {
  const config = AppConfig.parse({
    name: "hooks",
    compatibility_date: "2026-11-20",
    agents: [{ binding: "REPOS", class_name: "RepoAgent" }],
    webhooks,
    ...(deliveries && { deliveries }),
  });
  const turn = { number: 1, attempt: 1, sentAt: Date.now() };
  const full = waiting > 0 && {
    next: waiting + 1,
    waiting: [[1, waiting] as [number, number]],
    turn,
  };
  const delivered: Delivered[] = [];
  const clock = { now: Date.now() };
  const inbox = { ...agentInboxActor, initial: { ...agentInboxActor.initial, ...full } };
  const actors = memoryActors({
    actors: [inbox, appUsageActor],
    hosted: (all) => [
      answeringAgent(all, {
        answer(key, delivery) {
          delivered.push({ key, delivery });
          return 200;
        },
      }),
    ],
    now: () => clock.now,
  });
  const blobs = new MemoryBlobs();
  const now = () => clock.now;
  const limits = { agents: 10, bytes: bytesMax };
  const room = new AccountRoom({ actors, limits, now });
  const endpoints = webhookEndpoints({ actors, blobs, now, room }, budget);
  const server = await startHttpServer(async (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const declared = endpointOf(config, path);
    if (!declared) return void response.writeHead(418).end("the app's own");
    const answered = await endpoints.answer({
      ...{ accountId: request.headersDistinct["x-account"]?.[0] ?? HOOK_ACCOUNT, app: "hooks" },
      ...{ config, declared },
      secretOf: (name) => secrets[name],
      request: {
        method: request.method ?? "",
        calledUrl: `https://hooks.example${request.url}`,
        url: `http://app.test${request.url}`,
        headers: Object.entries(request.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        ),
        body: request,
      },
      logger: pino({ level: "silent" }),
    });
    response.writeHead(answered.status, answered.headers).end(answered.body);
  });
  return {
    url: `http://${server.address}:${server.port}`,
    ...{ actors, delivered, blobs, clock },
    async [Symbol.asyncDispose]() {
      await actors.settled();
      await server.close();
    },
  };
}
