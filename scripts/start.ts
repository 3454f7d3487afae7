/** What `npm start` runs once scripts/setup has brought what is needed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { StopSignal } from "./stop-signal.ts";

// Before the rest is loaded, which takes as long as starting it: a signal may come at any moment.
const stopping = new StopSignal();
const [{ greeting }, { runProgram }, { roles }] = await Promise.all([
  import("./greeting.ts"),
  import("./program.ts"),
  import("./roles.ts"),
]);
// What came meanwhile is heard between two turns.
await nextTurn();

process.exit(
  await runProgram({
    environment: process.env,
    roles,
    stopping,
    onReady: (config) => console.log(greeting(config)),
  }),
);
