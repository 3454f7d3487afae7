import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "chai";
import { stop } from "esbuild";
import { APP_BUNDLE_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { AppFolder } from "../testing/app-folder.ts";
import { readAppConfig } from "./app-config-file.ts";
import { bundleApp, checkedBundle, codeOf } from "./bundle-app.ts";

describe("bundleApp", function () {
  this.timeout(30_000);
  let folder: AppFolder;
  beforeEach(async () => {
    folder = await AppFolder.make();
    const config = { name: "hooks", main: "src/index.ts", compatibility_date: "2026-11-20" };
    await folder.write("trunkline.jsonc", config);
  });
  afterEach(() => folder[Symbol.asyncDispose]());
  after(() => stop());

  const bundle = () => bundleApp(readAppConfig(join(folder.path, "trunkline.jsonc")));

  /** Imports the bundle and returns its exports. */
  async function load(text: string): Promise<Record<string, unknown>> {
    const path = join(folder.path, "bundle.mjs");
    await writeFile(path, text);
    return import(pathToFileURL(path).href);
  }

  const failure = () =>
    bundle().then(
      () => "",
      (error: Error) => error.message,
    );

  it("bundles TypeScript, packages and Node modules, with import and require, into one module", async () => {
    await folder.write("node_modules/old/package.json", { name: "old", main: "main.js" });
    await folder.write(
      "node_modules/old/main.js",
      `const Emitter = require("events"); const { format } = require("node:util");
class Old extends Emitter {}
module.exports = { emits: new Old() instanceof Emitter, text: format("%d", 3) };`,
    );
    await folder.write("src/name.ts", `export const name: string = "né";`);
    await folder.write(
      "src/index.ts",
      `import { createHash } from "crypto"; import old from "old"; import { name } from "./name.ts";
export const all = [createHash("sha256").update("").digest("hex").length, old, name];`,
    );
    const text = await bundle();
    expect(text).to.match(/\n\/\/# sourceMappingURL=data:application\/json;base64,[\w+/=]+\n$/);
    expect(codeOf(text)).to.not.include("sourceMappingURL");
    expect(text).to.not.include("Dynamic require");
    expect((await load(text)).all).to.deep.equal([64, { emits: true, text: "3" }, "né"]);
  });

  it("names the importers of forbidden modules, and keeps allowed ones external", async () => {
    await folder.write("node_modules/@some/library/package.json", { main: "main.js" });
    await folder.write(
      "node_modules/@some/library/main.js",
      `const { Agent } = require("https"); exports.tls = import("tls"); exports.Agent = Agent;`,
    );
    await folder.write(
      "src/index.ts",
      `import { read } from "fs"; import { createHash } from "crypto"; import * as library from "@some/library";
export const all = [read, createHash, library];`,
    );
    const imported = Array.from((await bundle()).matchAll(/"(node:[^"]*)"/g), ([, one]) => one);
    expect(imported).to.have.members([
      "node:https?importer=%40some%2Flibrary",
      "node:tls?importer=%40some%2Flibrary",
      "node:fs?importer=src%2Findex.ts",
      "node:crypto",
    ]);
  });

  it("uses a package's build for workers, or else for browsers", async () => {
    for (const name of ["both", "browser", "field"]) {
      await folder.write(`node_modules/${name}/node.js`, "export default 'node';");
      await folder.write(`node_modules/${name}/browser.js`, "export default 'browser';");
      await folder.write(`node_modules/${name}/worker.js`, "export default 'worker';");
    }
    const exports = { worker: "./worker.js", browser: "./browser.js", default: "./node.js" };
    const { worker: _, ...ofBrowser } = exports;
    await folder.write("node_modules/both/package.json", { exports });
    await folder.write("node_modules/browser/package.json", { exports: ofBrowser });
    await folder.write("node_modules/field/package.json", {
      main: "node.js",
      browser: "browser.js",
    });
    await folder.write(
      "src/index.ts",
      `import both from "both"; import browser from "browser"; import field from "field"; export const all = [both, browser, field];`,
    );
    expect((await load(await bundle())).all).to.deep.equal(["worker", "browser", "browser"]);
  });

  it("keeps trunkline/agents external, keeps class names, and supports standard decorators", async () => {
    await folder.write(
      "src/index.ts",
      `import { Agent } from "trunkline/agents";
const seen: string[] = [];
function mark() { return (_method: unknown, { name, kind }: { name: string | symbol; kind: string }) => { seen.push(kind + " " + String(name)); }; }
class Outer { @mark() callMe() {} }
const Other = class Inner {};
export { Agent, Outer as Renamed, Other, seen };`,
    );
    const text = await bundle();
    expect(text).to.match(/import \{ Agent \} from "trunkline\/agents"/);
    const loaded = await load(text.replace(/import \{ Agent \}.*\n/, "const Agent = 1;\n"));
    expect(loaded.seen).to.deep.equal(["method callMe"]);
    expect(loaded.Renamed).to.have.property("name", "Outer");
    expect(loaded.Other).to.have.property("name", "Inner");
  });

  it("reports the position of errors, and unresolved imports", async () => {
    await folder.write("src/index.ts", `export const a = ;\n`);
    expect(await failure()).to.match(/Unexpected ";"[\s\S]*src\/index\.ts:1:17/);
    await folder.write("src/index.ts", `import "./lost.ts";\nimport "lost";`);
    expect(await failure()).to.match(
      /"\.\/lost\.ts"[\s\S]*src\/index\.ts:1:7[\s\S]*"lost"[\s\S]*:2:7/,
    );
  });

  it("reports that main is missing or names no file", async () => {
    expect(await failure()).to.match(/"main" names src\/index\.ts, and there is no such file$/);
    await folder.write("trunkline.jsonc", { name: "hooks", compatibility_date: "2026-11-20" });
    expect(await failure()).to.match(/expected "main", the module to bundle/);
  });

  it("accepts a bundle at the limit, and refuses one past it", () => {
    const text = "é".repeat(APP_BUNDLE_BYTES_MAX / 2);
    expect(checkedBundle(text)).to.equal(text);
    expect(() => checkedBundle(`${text}!`)).to.throw(
      `Cannot deploy: the bundle has ${APP_BUNDLE_BYTES_MAX + 1} bytes, and may have ${APP_BUNDLE_BYTES_MAX}`,
    );
  });
});
