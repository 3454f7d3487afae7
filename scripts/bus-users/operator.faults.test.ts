import { join } from "node:path";
import { expect } from "chai";
import { TASKS } from "../../actors/main.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import {
  deadSubject,
  STREAMS,
  stateBucket,
  stateSubjects,
  taskSubject,
} from "../../schemas/subjects.ts";
import { runCommand } from "../testing/command-line.ts";
import { SecuredNats } from "../testing/secured-nats.ts";

const MAIN = join(import.meta.dirname, "../trunkline.ts");

describe("commands with the user of an operator", function () {
  this.timeout(120_000);
  let nats: SecuredNats;
  let admin: Bus;
  before(async () => {
    nats = await SecuredNats.start();
    admin = await Bus.connect({ ...nats.login("admin"), name: "test" });
    await declareStreams(admin.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks: TASKS });
    const subjects = stateSubjects(stateBucket(0));
    const put = (subject: string, value: unknown) =>
      admin.jetstream.jetstream().publish(subject, JSON.stringify(value));
    await put(subjects.lease("north"), { leaving: false });
    await put(subjects.epoch(3), { owner: "north" });
    const letter = { message: "rang", input: {}, error: "failed", tries: 5, buriedAt: 1_000 };
    await put(deadSubject("account.a"), letter);
    await put(taskSubject("git-upkeep", "upkeep"), {});
  });
  after(async () => {
    await admin.close();
    await nats[Symbol.asyncDispose]();
  });
  const run = (...parameters: string[]) =>
    runCommand(process.execPath, [MAIN, "admin", ...parameters], nats.settings("operator"));

  it("shows shards, tasks and dead letters", async () => {
    const shown = {
      shards: /^north +held .* 3$/m,
      tasks: /^git-upkeep\.upkeep +1 +0 +-$/m,
      "dead list": /account\.a/,
      "dead show 1": /failed/,
    };
    for (const [command, text] of Object.entries(shown)) {
      const { code, stdout, stderr } = await run(...command.split(" "));
      expect(code, stderr).to.equal(0);
      expect(stdout).to.match(text);
    }
  });

  it("changes nothing, and reports the missing right at once", async () => {
    for (const command of ["dead drop 1", "dead retry 1", "streams"]) {
      const { code, stderr } = await run(...command.split(" "));
      expect(code, command).to.equal(1);
      expect(stderr).to.match(
        /^Cannot ask the bus: this user may not publish \S+; use that of admin\.nk\n$/,
      );
    }
    const { state } = await admin.jetstream.streams.info(STREAMS.dead);
    expect(state.messages).to.equal(1);
  });
});
