import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { GitWorld } from "../testing/git-world.ts";
import { warmSpawner } from "../testing/warm-spawner.ts";

/** So many that git lists more lines in one chunk than a reader of lines takes before it pauses its input. */
const FILES = 5_000;
/** More than the bytes of the directory, which counts as an object too. */
const FILE_BYTES = 300_000;

describe("path of a refused object", function () {
  this.timeout(120_000);

  it("is found among the first of many, and the push leaves nothing behind", async () => {
    await using world = await GitWorld.start();
    const gateway = await world.gateway({ sizes: { fileBytes: FILE_BYTES } });
    await warmSpawner(gateway.dataDir);
    const repo = await world.repo();
    const work = await world.checkout();
    const name = (number: number) => `a/${String(number).padStart(5, "0")}`;
    const contents = Array.from({ length: FILES }, (_, number) => [name(number), `${number}`]);
    const files = new Map(contents as [string, string][]);
    files.set(name(300), "x".repeat(FILE_BYTES + 1));
    await work.commitFiles(files);
    const pushed = await work.tryGit("push", gateway.remote(repo), "main");
    expect(pushed.code).to.not.equal(0);
    expect(pushed.stderr).to.contain(`"${name(300)}" has ${FILE_BYTES + 1} bytes`);
    const { slots, cache } = gateway.service.parts;
    await until("its slot is free", () => slots.running === 0);
    const temporary = () => readdir(join(cache.files.root, "tmp"));
    await until("its quarantine is gone", async () => (await temporary()).length === 0);
    expect(gateway.faults).to.deep.equal([]);
  });
});
