import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { Agent } from "../package/agent.ts";
import { HostLink } from "./host-link.ts";
import { type AgentClass, OpenAgent } from "./open-agent.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

class Plain extends Agent {}

describe("the memory of an app's process", function () {
  this.timeout(120_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-agents-"));
  });
  after(() => rm(folder, { recursive: true }));

  const open = (number: number, log: { image?: Uint8Array; records?: Uint8Array[] } = {}) =>
    new OpenAgent({
      number,
      address: { accountId: "a".repeat(32), app: "app", className: "Plain", name: `${number}` },
      agentClass: Plain as unknown as AgentClass,
      env: {},
      link: new HostLink(() => {}),
      path: join(folder, `${number}.db`),
      image: log.image,
      records: log.records ?? [],
      lastCommit: 1,
      limits: {
        databaseBytes: 1024 ** 2,
        ...{ answerBytes: 1_000, turnMs: 1_000, workMs: 1_000, togetherMs: 1_000 },
      },
    });

  it("has room again after an agent was closed", async () => {
    const closed: WeakRef<OpenAgent>[] = [];
    for (let number = 0; number < 20; number += 1) {
      const agent = open(number);
      agent.database.run("CREATE TABLE entries (what TEXT)");
      agent.close();
      closed.push(new WeakRef(agent));
    }
    // The last one may still be on the stack.
    await until("the closed agents are collected", () => {
      collectGarbage();
      return closed.filter((agent) => agent.deref() !== undefined).length <= 1;
    });
  });

  it("does not keep the image and the records that an open agent was opened from", async () => {
    const first = open(100);
    first.database.run("CREATE TABLE entries (what TEXT)");
    const record = first.database.take() ?? new Uint8Array();
    const image = first.database.log.takeImage();
    first.close();
    const given = [new Uint8Array(image), new Uint8Array(record)].map(
      (bytes) => new WeakRef(bytes),
    );
    const agents = [
      open(101, { image: given[0]?.deref() as Uint8Array }),
      open(102, { records: [given[1]?.deref() as Uint8Array] }),
    ];
    await until("the bytes are collected", () => {
      collectGarbage();
      return given.every((bytes) => bytes.deref() === undefined);
    });
    for (const agent of agents) {
      expect(agent.database.run("SELECT what FROM entries").rows).to.deep.equal([]);
      agent.close();
    }
  });
});
