/** What `npm start` runs once scripts/setup has brought what is needed. */
import { greeting } from "./greeting.ts";
import { runProgram } from "./program.ts";
import { roles } from "./roles.ts";

process.exit(
  await runProgram({
    environment: process.env,
    roles,
    onReady: (config) => console.log(greeting(config)),
  }),
);
