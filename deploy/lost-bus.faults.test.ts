/**
 * Disconnects a whole instance from its bus for a while. Expects one log line about the loss and one about the
 * recovery.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { expect } from "chai";
import { startNats } from "../scripts/testing/nats-server.ts";
import { RoleProcess } from "../scripts/testing/role-process.ts";
import { until } from "../scripts/testing/until.ts";

const AWAY_MS = 4_000;
const WARN = 40;
const LOST = "connection to the bus lost, connecting again";

describe("a lost bus", function () {
  this.timeout(600_000);

  it("causes one log line, however much fails meanwhile", async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-lost-bus-"));
    await using nats = await startNats();
    await using instance = await RoleProcess.start("data", folder, {
      TRUNKLINE_ROLES: "gateway,actors",
      TRUNKLINE_NATS_URL: nats.url,
    });
    await instance.ready();
    const before = instance.lines.length;
    await nats.kill();
    const isLost = () => instance.lines.slice(before).some((line) => line.includes(LOST));
    await until("it says that the bus is lost", isLost, 120_000);
    await wait(AWAY_MS);
    const away = instance.lines.slice(before).flatMap(warningOf);
    expect(away).to.deep.equal([LOST]);
    await nats.start();
    const isBack = () => instance.lines.some((line) => line.includes('"bus is back"'));
    await until("it says that the bus is back", isBack, 120_000);
    await instance.ready();
    instance.signal("SIGTERM");
    expect(await instance.exit()).to.equal(0);
    await rm(folder, { recursive: true });
  });
});

/** Returns the text of a log line if its level is warning or higher. */
function warningOf(line: string): string[] {
  if (!line.startsWith("{")) return [];
  const { level, msg } = JSON.parse(line) as { level: number; msg: string };
  return level >= WARN ? [msg] : [];
}
