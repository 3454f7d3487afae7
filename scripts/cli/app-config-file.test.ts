import { expect } from "chai";
import { AppFolder } from "../testing/app-folder.ts";
import { readAppConfig } from "./app-config-file.ts";

const GOOD = { name: "hooks", main: "src/index.ts", compatibility_date: "2026-11-20" };

describe("readAppConfig", () => {
  let folder: AppFolder;
  before(async () => {
    folder = await AppFolder.make();
  });
  after(() => folder[Symbol.asyncDispose]());

  /** Returns the faults of this configuration text, one a line, without the folder's path. */
  async function faultsOf(text: string): Promise<string[]> {
    await folder.write("app/trunkline.jsonc", text);
    try {
      readAppConfig(`${folder.path}/app/trunkline.jsonc`);
      return [];
    } catch (error) {
      const lines = error instanceof Error ? error.message.split("\n") : [];
      return lines.map((line) =>
        line.slice(line.indexOf("trunkline.jsonc") + "trunkline.jsonc".length),
      );
    }
  }

  it("reads JSON with comments, trailing commas and a byte order mark", async () => {
    await folder.write(
      "app/trunkline.jsonc",
      `\ufeff{ // the app
  "name": "hooks", /* its code */ "main": "src/index.ts",
  "compatibility_date": "2026-11-20", "vars": { "N": 1, },
}`,
    );
    const { config, folder: place } = readAppConfig(`${folder.path}/app/trunkline.jsonc`);
    expect(config).to.deep.include({ ...GOOD, vars: { N: 1 }, agents: [] });
    expect(place).to.equal(`${folder.path}/app`);
  });

  it("names an unknown key with its position and the nearest known key", async () => {
    const text = `{
  "name": "hooks",
  "compatibility_date": "2026-11-20",
  "agnets": [],
  "agents": [
    { "binding": "A", "class": "A", "class_name": "A" }
  ]
}`;
    const [top, nested, ...more] = await faultsOf(text);
    expect(top).to.match(/^:4:3 \/agnets: Unknown field, expected one of .*; is agents meant\?$/);
    expect(nested).to.match(/^:6:23 \/agents\/0\/class: Unknown field/);
    expect(more).to.deep.equal([]);
  });

  it("reports all invalid values at their positions, and missing ones where they belong", async () => {
    const text = `{ "name": "No Name",
  "compatibility_date": 3 }`;
    const [name = "", date = ""] = await faultsOf(text);
    expect(name).to.match(/^:1:3 \/name: expected 1 to 63 lower-case letters/);
    expect(date).to.match(/^:2:3 \/compatibility_date: Expected a date/i);
    expect((await faultsOf(`{ "name": "a" }`)).join()).to.match(
      /^:1:1 \/compatibility_date: expected a date/,
    );
  });

  it("reports the position of invalid JSON, and duplicate keys", async () => {
    expect((await faultsOf('{\n  "name" "hooks"\n}')).join()).to.match(/^:2:10 colon expected/);
    const text = '{ "name": "a",\n "name": "b", "compatibility_date": "2026-11-20" }';
    expect(await faultsOf(text)).to.deep.equal([':2:2 "name" is there twice']);
    expect(await faultsOf("")).to.have.length(1);
    expect((await faultsOf("[]")).join()).to.match(/^:1:1 /);
  });

  it("names a missing file, and how to create it", () => {
    expect(() => readAppConfig("no/such.jsonc")).to.throw(
      "Cannot read no/such.jsonc: there is no such file; go to the app's folder, or name the file by --config",
    );
  });
});
