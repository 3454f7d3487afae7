/** A gateway that serves git, as a process that ends itself at a chosen step of a push: `<url> <data> <step>`. */
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import { pino } from "pino";
import { type ActorClient, BusActorClient } from "../../../actors/runtime/actor-client.ts";
import { BlobStore } from "../../../actors/runtime/blob-store.ts";
import { Bus } from "../../../actors/runtime/bus.ts";
import { systemClock } from "../../../actors/runtime/clock.ts";
import { requestId } from "../../middleware/request-id.ts";
import { gitService } from "../git-router.ts";

const [url = "", dataDir = "", step = "none"] = process.argv.slice(2);
const bus = await Bus.connect({ url, name: "gateway" });
const service = await gitService({
  actors: endingActors(new BusActorClient(bus, systemClock)),
  blobs: endingBlobs(new BlobStore(bus, systemClock)),
  dataDir,
  now: Date.now,
});
const app = express();
app.use(requestId(pino({ level: "error" })));
app.use("/git", service.router);
const server = createServer(app).listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");
console.log(`listening ${address.port}`);

/** As a crash would: nothing is flushed, nobody is told. */
function endAt(name: string): void {
  if (name === step) process.kill(process.pid, "SIGKILL");
}

function endingBlobs(blobs: BlobStore): Pick<BlobStore, "put" | "get"> {
  return {
    get: (...given) => blobs.get(...given),
    async put(...given) {
      endAt("before-store");
      const stored = await blobs.put(...given);
      endAt("after-store");
      return stored;
    },
  };
}

function endingActors(actors: BusActorClient): ActorClient {
  const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
    if (message !== "swap") return await actors.call(contract, key, message, ...rest);
    endAt("before-swap");
    const answered = actors.call(contract, key, message, ...rest);
    endAt("during-swap");
    const reply = await answered;
    endAt("after-swap");
    return reply;
  };
  return { call, send: actors.send.bind(actors), run: actors.run.bind(actors) };
}
