/**
 * A process with a gateway that serves git. It kills itself at a chosen step of a push or a compaction: `<url> <data>
 * <step> [upkeep] [ms of holds]`.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import { pino } from "pino";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type ActorClient, BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { RowNames } from "../../../actors/runtime/commit/stored-subjects.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { ServiceCounts } from "../../../actors/runtime/observe/service-counts.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { defineWorker } from "../../../actors/runtime/workers/define-worker.ts";
import { WorkerHost } from "../../../actors/runtime/workers/worker-host.ts";
import { requestId } from "../../http/middleware/request-id.ts";
import { gitService } from "../git/git-service.ts";
import type { LfsBlobs } from "../lfs/lfs-store.ts";
import type { PackBlobs } from "../packs/pack-store.ts";
import { upkeepWorker } from "../upkeep/upkeep-worker.ts";

const [url = "", dataDir = "", step = "none", upkeep = "", packsHeldMs] = process.argv.slice(2);
const bus = await Bus.connect({ url, name: "gateway" });
const blobs = new BlobStore(bus, systemClock);
const service = await gitService({
  actors: endingActors(new BusActorClient(bus, systemClock)),
  blobs: endingBlobs(blobs),
  dataDir,
  now: Date.now,
  bitmapsFromBytes: 1,
  ...(packsHeldMs !== undefined && { packsHeldMs: Number(packsHeldMs) }),
});
if (upkeep) {
  const rows = new RowNames(bus, { buckets: 1 });
  const { contract, ...worker } = upkeepWorker(service.parts, { blobs, rows });
  const { compact, ...others } = worker.handlers;
  const handlers: typeof worker.handlers = {
    compact: (input, context) => compact(input, { ...context, call: ending(context.call) }),
    ...others,
  };
  const logger = pino({ level: "fatal" });
  const counts = new ServiceCounts(new Map());
  const definitions = [defineWorker(contract, { ...worker, handlers })];
  new WorkerHost({ bus, clock: systemClock, logger, counts, definitions }).start();
}
const app = express();
app.use(requestId(pino({ level: "error" })));
app.use("/git", service.router);
const server = createServer(app).listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");
console.log(`listening ${address.port}`);

/** Kills this process at the chosen step, so that nothing is flushed or reported. */
function endAt(name: string): void {
  if (name === step) process.kill(process.pid, "SIGKILL");
}

function endingBlobs(blobs: BlobStore): PackBlobs & LfsBlobs {
  return {
    part: (...given) => blobs.part(...given),
    get: (...given) => blobs.get(...given),
    isWhole: (...given) => blobs.isWhole(...given),
    streamUse: (...given) => blobs.streamUse(...given),
    async put(...given) {
      endAt("before-store");
      const stored = await blobs.put(...given);
      endAt("after-store");
      return stored;
    },
  };
}

function endingActors(actors: BusActorClient): ActorClient {
  const call = ending(actors.call.bind(actors));
  return { call, send: actors.send.bind(actors), run: actors.run.bind(actors) };
}

function ending(inner: ActorClient["call"]): ActorClient["call"] {
  return async (contract, key, message, ...rest) => {
    if (message !== "swap" && message !== "compact") {
      return await inner(contract, key, message, ...rest);
    }
    endAt(`before-${message}`);
    const answered = inner(contract, key, message, ...rest);
    endAt(`during-${message}`);
    const reply = await answered;
    endAt(`after-${message}`);
    return reply;
  };
}
