/** The program that `npm start` runs after scripts/setup. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { StopSignal } from "./stop-signal.ts";

// Before the other modules: loading them takes as long as starting, and a signal may come meanwhile.
const stopping = new StopSignal();
const [{ greeting }, { runProgram }, { returnMemory }, { roles }] = await Promise.all([
  import("./greeting.ts"),
  import("./program.ts"),
  import("./return-memory.ts"),
  import("./roles.ts"),
]);
// Signals that arrived during the load are delivered in the next turn of the event loop.
await nextTurn();

process.exit(
  await runProgram({
    environment: process.env,
    roles,
    stopping,
    onReady(config) {
      returnMemory();
      console.log(greeting(config));
    },
  }),
);
