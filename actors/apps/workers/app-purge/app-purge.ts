/** Deletes the data of removed apps: bundles, logs, and all data of their agents. */
import { agentAlarm } from "../../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../../schemas/apps/agent-inbox.ts";
import { app } from "../../../../schemas/apps/app.ts";
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import { appPurge } from "../../../../schemas/apps/app-purge.ts";
import { appUsage } from "../../../../schemas/apps/app-usage.ts";
import { outgoingWebhook } from "../../../../schemas/apps/outgoing-webhook.ts";
import { type Contract, envelope } from "../../../../schemas/contract.ts";
import { agentLogsOf } from "../../../../schemas/split-streams.ts";
import { appLogSubject, STREAMS } from "../../../../schemas/subjects.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import { keysBeneath } from "../../../runtime/commit/stored-subjects.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { defineWorker } from "../../../runtime/workers/define-worker.ts";

/** Number of concurrent purges. One is enough, because purges mostly wait for the bus and are not urgent. */
const SLOTS = 1;

export function appPurgeWorker({
  bus,
  blobs,
  buckets,
}: {
  bus: Bus;
  blobs: Pick<BlobStore, "removeAll" | "remove">;
  /** Number of state streams. */
  buckets: number;
}) {
  const purge = (stream: string, filter: string) =>
    bus.whileConnected(() => bus.jetstream.streams.purge(stream, { filter }));
  return defineWorker(appPurge, {
    slots: { purge: SLOTS },
    handlers: {
      async purge({ app: key }, { send, call }) {
        const keysOf = ({ kind }: Contract) => keysBeneath(bus, { kind, tokens: key, buckets });
        for (const of of await keysOf(agentInbox)) {
          await send([envelope(agentInbox, of, "clear", {})]);
        }
        for (const of of await keysOf(outgoingWebhook)) {
          await send([envelope(outgoingWebhook, of, "clear", {})]);
        }
        for (const of of await keysOf(agentAlarm)) await call(agentAlarm, of, "set", {});
        const { stream, beneath } = agentLogsOf(bus.layout, key);
        await purge(stream, beneath(key));
        await purge(STREAMS.appLogs, appLogSubject(key));
        await blobs.removeAll(`app.${key}`);
        const { accountId, app: name } = readAppKey(key);
        const purged = envelope(appUsage, accountId, "purged", { app: name });
        return { send: [purged, envelope(app, key, "purged", {})] };
      },
      async removeBundle({ bundle }) {
        await blobs.remove(bundle);
        return {};
      },
    },
    failures: {
      // The app repeats the task until it gets the notice that everything is deleted.
      purge: () => [],
      // A bundle that could not be removed is deleted with its app.
      removeBundle: () => [],
    },
  });
}
