/** The program that `npm start` runs after scripts/setup. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { StopSignal } from "./stop-signal.ts";

/**
 * When the garbage of the start is collected. Not at the start itself: the collection would delay the first requests,
 * and an instance that soon ends does not need it.
 */
const RETURN_MEMORY_AFTER_MS = 5_000;

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
      setTimeout(returnMemory, RETURN_MEMORY_AFTER_MS).unref();
      console.log(greeting(config));
    },
  }),
);
