/** The program that `npm start` runs after scripts/setup. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { StopSignal } from "./stop-signal.ts";

// Created before the other modules load: loading takes as long as starting, and a signal may arrive meanwhile.
const stopping = new StopSignal();
const [{ greeting }, { runProgram }, { returnMemory }, { roles }] = await Promise.all([
  import("./greeting.ts"),
  import("./program.ts"),
  import("./return-memory.ts"),
  import("./roles.ts"),
]);
// Waits one turn of the event loop, in which signals that arrived while modules loaded are delivered.
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
