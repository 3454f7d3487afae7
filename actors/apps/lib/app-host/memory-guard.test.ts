import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { appEntry } from "../../../../schemas/apps/agent.ts";
import { appKey } from "../../../../schemas/apps/app-names.ts";
import { startAgentWorld } from "../../../../scripts/testing/agent-world.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { type HostRoom, readHostRooms } from "./host-rooms.ts";
import { type GuardedProcess, MemoryGuard } from "./memory-guard.ts";

const MIB = 1024 ** 2;
const [GREEDY, OTHER, THIRD] = ["a", "b", "c"].map((digit) => digit.repeat(32));

const APP = `
let kept;
export default {
  async fetch(request) {
    const { bytes, gate } = await request.json();
    kept = Buffer.alloc(bytes, 1);
    if (gate) await fetch(gate);
    return new Response(String(kept.length));
  },
};`;

describe("memory of app processes", function () {
  this.timeout(240_000);

  it("that is short ends processes of the account that uses most, and keeps others running", async () => {
    let freeBytes = 512 * MIB;
    const rooms = async (): Promise<HostRoom[]> => [
      { name: "memory", totalBytes: 1_024 * MIB, freeBytes },
    ];
    await using world = await startAgentWorld();
    const { agents } = await world.host("first", { rooms });
    const held: ServerResponse[] = [];
    await using gate = await startHttpServer((_, response) => void held.push(response));
    const ended: string[] = [];
    async function start(account = "", name = "", { bytes = 0, isHeld = false } = {}) {
      const key = await world.deploy(name, APP, {}, account);
      const body = {
        text: JSON.stringify({ bytes, gate: isHeld && `http://127.0.0.2:${gate.port}/` }),
      };
      const request = { method: "POST", url: "http://app/", headers: [], body };
      const before = held.length;
      const answer = world.client.call(appEntry, key, "request", request).then(
        ({ status }) => String(status),
        (error: Error) => error.message,
      );
      if (!isHeld) expect(await answer).to.equal("200");
      else await until("it is at work", () => held.length > before);
      const { process } = await agents.processes.of(key);
      void process.ended.then(() => ended.push(name));
      return { answer, process };
    }
    await start(GREEDY, "unused");
    const greedy = await start(GREEDY, "greedy", { bytes: 200 * MIB, isHeld: true });
    const modest = await start(OTHER, "modest", { bytes: 10 * MIB, isHeld: true });
    expect(ended).to.deep.equal([]);
    freeBytes = 127 * MIB;
    await until("the greedy one has ended", () => ended.length === 2);
    expect(ended).to.deep.equal(["unused", "greedy"]);
    expect(await greedy.answer).to.match(/its host had little memory left, and the apps of its/);
    await start(THIRD, "first");
    const second = await world.deploy("second", APP, {}, OTHER);
    const refusal = await refusalOf(agents.processes.of(second));
    expect(refusal).to.include({ code: "busy" });
    expect(refusal.message).to.match(/its host has little memory left/);
    freeBytes = 512 * MIB;
    await until("it may start again", () => agents.processes.of(second).catch(() => undefined));
    expect(modest.process.isEnded).to.equal(false);
    for (const response of held) response.end();
    expect(await modest.answer).to.equal("200");
  });

  it("that databases take counts by the files of a process, and a process without files stays", async () => {
    const root = await mkdtemp(join(tmpdir(), "trunkline-guard-"));
    const stopped = new AbortController();
    const alive = new Map<string, GuardedProcess>();
    const reasons: string[] = [];
    const ended: string[] = [];
    async function add(account = "", name = "", { bytes = 0, isIdle = false } = {}) {
      const folder = join(root, name);
      await mkdir(join(folder, "work"), { recursive: true });
      if (bytes > 0) await writeFile(join(folder, "work", "agent.db"), Buffer.alloc(bytes, 1));
      const end = (reason: string) => {
        alive.delete(name);
        ended.push(name);
        reasons.push(reason);
      };
      alive.set(name, { key: appKey(account, name), pid: process.pid, folder, isIdle, end });
    }
    await add(GREEDY, "empty", { isIdle: true });
    await add(GREEDY, "greedy", { bytes: 140 * MIB });
    await add(OTHER, "modest", { bytes: MIB });
    let reads = 0;
    const rooms = async (): Promise<HostRoom[]> => {
      reads += 1;
      return [{ name: "files", totalBytes: 1_024 * MIB, freeBytes: 100 * MIB }];
    };
    new MemoryGuard({
      ...{ clock: systemClock, logger: pino({ level: "silent" }), stopped: stopped.signal, rooms },
      processes: () => [...alive.values()],
    });
    await until("it has looked several times", () => reads > 3);
    stopped.abort();
    expect(ended).to.deep.equal(["greedy"]);
    expect(reasons[0]).to.match(/little room left for databases/);
    await rm(root, { recursive: true });
  });

  it("is read from the machine, and the room of the folder from its file system", async () => {
    const rooms = await readHostRooms(process.cwd());
    expect(rooms.map(({ name }) => name)).to.include.members(["memory", "files"]);
    for (const { totalBytes, freeBytes } of rooms) {
      expect(totalBytes).to.be.above(0);
      expect(freeBytes).to.be.above(0);
    }
  });
});
