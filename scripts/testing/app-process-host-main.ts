/**
 * Hosts one app process and nothing else, for tests that kill this host: `node app-process-host-main.ts <folder>
 * <code> [bound]`. With `bound`, the kernel ends the app process when the host ends. The program calls the method
 * `go` of the agent class `Going`, and prints the app's log and the messages of the agent.
 */
import { join } from "node:path";
import { serialize } from "node:v8";
import { AppUsers, whyOneUser } from "../../actors/apps/lib/app-host/app-user.ts";
import { endedWithHost } from "../../actors/apps/lib/app-host/ended-with-host.ts";
import { AppProcess } from "../../actors/apps/lib/app-process/app-process.ts";
import { processArguments } from "../../actors/apps/process/arguments.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { AppConfig } from "../../schemas/apps/app-config.ts";

const [folder = "", code = "", bound] = process.argv.slice(2);
const program = bound === "bound" ? endedWithHost(processArguments) : processArguments;
const { main } = program({ bundleFolder: folder, workFolder: folder });
const isPossible = (await whyOneUser([process.execPath, main])) === undefined;
const config = AppConfig.parse({
  name: "app",
  compatibility_date: "2026-11-20",
  agents: [{ binding: "Going", class_name: "Going" }],
});
const app = await AppProcess.start(
  {
    ...{ clock, program, key: "app", folder: join(folder, "1") },
    user: new AppUsers({ isPossible }).take("app"),
    operate() {},
    streams: { heard() {}, ofEntry: () => 0 },
    log: ({ text }) => console.log(`says ${text}`),
  },
  {
    serving: { version: 1, revision: 1, bundle: "bundle", secrets: [], config },
    bundle: Buffer.from(code),
    values: {},
  },
);
const address = { accountId: "a".repeat(32), app: "app", className: "Going", name: "a" };
const { agent } = await app.openAgent(
  { key: "a", address },
  { image: undefined, records: [], lastCommit: 0 },
  { heard: ({ type }) => console.log(`heard ${type}`), ended() {}, turns: 0, giveWay: () => false },
);
const args = new Uint8Array(serialize({ args: [] }));
app.turn({ agent, id: "first", input: { type: "invoke", method: "go", args } });
