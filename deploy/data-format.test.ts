import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";
import { DATA_FORMAT_SUBJECT, stateBucket, stateSubjects } from "../schemas/subjects.ts";
import { startWorld, type World } from "../scripts/testing/actor-world.ts";
import { until } from "../scripts/testing/until.ts";
import { dataFormatOf, refuseNewerData, type UpgradeStep, upgradeData } from "./data-format.ts";
import { openData } from "./open-data.ts";
import { markRestore, RESTORE_MARK } from "./restore-mark.ts";

const { stream, epoch, lease } = stateSubjects(stateBucket(0));
const NOTES = "$KV.state-0.note.";

describe("data format", function () {
  this.timeout(300_000);
  let world: World;
  beforeEach(async () => {
    world = await startWorld();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const publish = (subject: string, payload: string) =>
    world.bus.jetstream.jetstream().publish(subject, payload);
  const notes = () => world.bus.subjectsOf(stream, `${NOTES}>`);

  /** Two upgrade steps, to the formats 2 and 3. Each step writes a note that proves that it ran. */
  const steps = (): UpgradeStep[] =>
    [2, 3].map((to) => ({ to, run: async () => void (await publish(`${NOTES}${to}`, "done")) }));

  it("the first start stores the newest format, and data without a stored format has the first", async () => {
    const { jetstream } = world.bus;
    expect(await dataFormatOf(jetstream)).to.equal(1);
    await upgradeData(jetstream, { version: "0.5.0", format: 3, upgrades: steps() });
    expect(await dataFormatOf(jetstream)).to.equal(3);
    expect(await notes()).to.deep.equal([]);
    const stored = await world.bus.readLast(stream, DATA_FORMAT_SUBJECT);
    expect(stored?.json()).to.include({ format: 3, version: "0.5.0" });
    await using older = await startWorld();
    await older.bus.jetstream.jetstream().publish(epoch(7), "{}");
    await upgradeData(older.bus.jetstream, { version: "0.5.0", format: 1, upgrades: [] });
    expect(await dataFormatOf(older.bus.jetstream)).to.equal(1);
  });

  it("upgradeData() runs the steps in order, each once, also where processes start together", async () => {
    const { jetstream } = world.bus;
    await upgradeData(jetstream, { version: "0.1.0", format: 1 });
    const ran: number[] = [];
    const counted = steps().map(({ to, run }) => ({
      to,
      run: async (...of: Parameters<UpgradeStep["run"]>) => {
        ran.push(to);
        await run(...of);
      },
    }));
    const options = { version: "0.5.0", format: 3, upgrades: counted };
    await Promise.all([1, 2, 3].map(() => upgradeData(jetstream, options)));
    expect(ran).to.deep.equal([2, 3]);
    expect(await dataFormatOf(jetstream)).to.equal(3);
  });

  it("a process that is killed in a step leaves the format, and the next one does the step anew", async () => {
    await upgradeData(world.bus.jetstream, { version: "0.1.0", format: 1 });
    const text = `
      const { Bus } = await import("${import.meta.dirname}/../actors/runtime/bus/bus.ts");
      const { upgradeData } = await import("${import.meta.dirname}/data-format.ts");
      const { jetstream } = await Bus.connect({ url: ${JSON.stringify(world.url)}, name: "dying" });
      const step = { to: 2, async run() {
        await jetstream.jetstream().publish("${NOTES}half", "");
        await new Promise(() => setInterval(() => {}, 1_000));
      } };
      await upgradeData(jetstream, { version: "0.5.0", format: 2, upgrades: [step] });`;
    const dying = spawn(process.execPath, ["--input-type=module", "-e", text], {
      stdio: "inherit",
    });
    await until("it is in the step", async () => (await notes()).length === 1);
    dying.kill("SIGKILL");
    await once(dying, "exit");
    expect(await dataFormatOf(world.bus.jetstream)).to.equal(1);
    const options = { version: "0.5.0", format: 2, upgrades: steps() };
    // `upgradeData` waits until the lock of the dead process has expired.
    await upgradeData(world.bus.jetstream, options);
    expect(await notes()).to.have.members([`${NOTES}half`, `${NOTES}2`]);
    expect(await dataFormatOf(world.bus.jetstream)).to.equal(2);
  });

  it("upgradeData() refuses while hosts of the older version run", async () => {
    const { jetstream } = world.bus;
    await upgradeData(jetstream, { version: "0.1.0", format: 1 });
    await publish(lease("old"), "{}");
    const options = { version: "0.5.0", format: 2, upgrades: steps() };
    const error = await upgradeData(jetstream, options).catch((cause: unknown) => cause);
    expect(String(error)).to.equal(
      "Error: Cannot upgrade the data from format 1 to 2 while hosts of actors run: stop every process of the older version, wait 2 seconds, and start this one again",
    );
    expect(await dataFormatOf(jetstream)).to.equal(1);
  });

  it("openData() of older code refuses newer data, names the remedy, and changes nothing", async () => {
    const { jetstream } = world.bus;
    await upgradeData(jetstream, { version: "9.9.0", format: 4, upgrades: steps() });
    await jetstream.streams.delete("DEAD");
    const error = await openData(jetstream, {
      ...{ version: "0.1.0", replicas: 1, tasks: [] },
    }).catch((cause: unknown) => cause);
    expect(String(error)).to.equal(
      "Error: Cannot open the data: version 9.9.0 of Trunkline wrote it in format 4, and this version 0.1.0 reads formats up to 3; install version 9.9.0 or newer, or restore a backup from before the upgrade into an empty bus (trunkline admin restore)",
    );
    const names: string[] = [];
    for await (const name of jetstream.streams.names()) names.push(name);
    expect(names).not.to.include("DEAD");
    await refuseNewerData(jetstream, { version: "9.9.0", format: 4 });
  });

  it("openData() refuses a bus on which a restore was interrupted", async () => {
    const { jetstream } = world.bus;
    const open = () =>
      openData(jetstream, { version: "0.1.0", replicas: 1, tasks: [] }).then(
        () => "open",
        (error: Error) => error.message,
      );
    await markRestore(jetstream, 1);
    expect(await open()).to.match(/^Cannot start: the restore of a backup is under way or was/);
    await jetstream.streams.delete(RESTORE_MARK);
    expect(await open()).to.equal("open");
  });
});
