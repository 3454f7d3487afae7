/**
 * Creates load on the bus from a separate process with one connection, as a gateway does. Call: `load-process <url>`.
 */

import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { answerParent } from "../answer-parent.ts";
import { openWorkloads, type Workload } from "./workloads.ts";

const [url = ""] = process.argv.slice(2);
const bus = await Bus.connect({ url, name: "bench-load" });
const workloads = await openWorkloads(bus, new BusActorClient(bus, clock));

answerParent({
  answer: (question) => {
    // The cast is safe, because only the benchmarks of this folder send questions to this process.
    const workload = question as Workload;
    return workloads[workload.workload](workload);
  },
  close: () => bus.close(),
});
