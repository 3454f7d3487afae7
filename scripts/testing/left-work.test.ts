import { expect } from "chai";
import { mailIn } from "../../schemas/split-streams.ts";
import { STREAMS, taskSubject } from "../../schemas/subjects.ts";
import { startWorld } from "./actor-world.ts";
import { echo } from "./echo.ts";
import { findLeftWork } from "./left-work.ts";

describe("findLeftWork", function () {
  this.timeout(60_000);

  it("names left mail, tasks and dead letters, and no marks of sent mail", async () => {
    await using world = await startWorld({ tasks: [echo] });
    const { bus } = world;
    const jetstream = bus.jetstream.jetstream();
    await jetstream.publish(mailIn(0).sent(3), "{}");
    expect(await findLeftWork(bus, 0)).to.deep.equal([]);

    const mail = mailIn(0).to(3, "probe.one");
    const task = taskSubject("echo", "fast");
    for (const subject of [mail, mail, task, "dead.probe.one"]) {
      await jetstream.publish(subject, "{}");
    }
    expect(await findLeftWork(bus, 0)).to.have.members([
      `2 of ${mail} are left`,
      `1 of ${task} are left`,
      "1 dead letters",
    ]);

    const found = findLeftWork(bus, 30_000);
    for (const stream of [STREAMS.mail, STREAMS.tasks, STREAMS.dead]) {
      await bus.jetstream.streams.purge(stream);
    }
    expect(await found).to.deep.equal([]);
  });
});
