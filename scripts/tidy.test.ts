import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { SourceFile } from "./tidy-files.ts";
import { importsHaveNoCircle, importsPointOneWay } from "./tidy-rooms.ts";
import {
  debtsNameAnIssue,
  isNamedInKebabCase,
  isShort,
  namesNoMachinePath,
  onlyRuntimeKnowsNats,
  opensWithSentence,
  productionImportsNoTest,
  variablesAreDocumented,
} from "./tidy-rules.ts";
import { commentsAreClear } from "./tidy-words.ts";
import { REPOSITORY } from "./tools.ts";

describe("tidy", () => {
  const files = repositoryFiles();
  const sources = files.filter(({ path }) => path.endsWith(".ts"));

  describe("importsPointOneWay()", () => {
    it("importsPointOneWay() holds", () => holds(sources, importsPointOneWay));

    const refused = [
      ["schemas/a.ts", "../actors/runtime/bus/bus.ts"],
      ["schemas/a.ts", "node:fs"],
      ["schemas/a.ts", "express"],
      ["schemas/a.ts", "../actors/apps/package/types.ts"],
      ["gateway/a.ts", "../actors/runtime/bus/bus.ts"],
      ["gateway/a.ts", "../scripts/config.ts"],
      ["gateway/a.ts", "../deploy/streams.ts"],
      ["gateway/a.ts", "../actors/apps/process/arguments.ts"],
      ["gateway/account/a.ts", "../../actors/account/user/user.ts"],
      ["gateway/account/a.ts", "../oauth/provider.ts"],
      ["gateway/http/a.ts", "../account/password.ts"],
      ["gateway/crawl/a.ts", "../repositories/repositories.ts"],
      ["actors/account/user/user.ts", "../account/account.ts"],
      ["actors/account/user/user.ts", "../../../gateway/app.ts"],
      ["actors/account/user/user.ts", "../../../scripts/config.ts"],
      ["actors/account/user/user.ts", "../../main.ts"],
      ["actors/account/user/user.ts", "../../rendering/lib/browser/browser.ts"],
      ["actors/runtime/bus/bus.ts", "../../account/user/user.ts"],
      ["actors/egress/guard.ts", "../rendering/workers/render/render.ts"],
      ["actors/rendering/lib/browser/browser.ts", "../../workers/render/render.ts"],
      ["actors/crawl/workers/crawl-page/a.ts", "../../../rendering/workers/render/render.ts"],
      ["actors/crawl/workers/crawl-page/a.ts", "../../site/site.ts"],
      ["actors/oauth/oauth-client/a.ts", "../../crawl/lib/robots/robots-rule.ts"],
      ["actors/main.ts", "../gateway/app.ts"],
      ["actors/apps/package/agent.ts", "../../runtime/bus/bus.ts"],
      ["actors/apps/agent/agent.ts", "../package/agent.ts"],
      ["actors/crawl/site/site.ts", "../../apps/process/arguments.ts"],
    ] as const;
    for (const [path, target] of refused) {
      it(`importsPointOneWay() refuses ${target} in ${path}`, () => {
        for (const statement of importsOf(target)) {
          expect(importsPointOneWay({ path, text: statement }), statement).to.have.length(1);
        }
      });
    }

    const allowed = [
      ["schemas/a.ts", "./b.ts"],
      ["schemas/http/a.ts", "zod"],
      ["schemas/crawl/a.ts", "../account/account.ts"],
      ["gateway/a.ts", "../actors/runtime/calls/actor-client.ts"],
      ["gateway/a.ts", "../actors/runtime/store/blob-store.ts"],
      ["gateway/a.ts", "../actors/runtime/bus/live.ts"],
      ["gateway/app.ts", "./oauth/oauth-service.ts"],
      ["gateway/crawl/a.ts", "../../schemas/b.ts"],
      ["gateway/crawl/a.ts", "express"],
      ["gateway/crawl/a.ts", "../http/route.ts"],
      ["gateway/oauth/pages/a.ts", "../../account/pages/visit.ts"],
      ["actors/account/user/user.ts", "../../../schemas/account/user.ts"],
      ["actors/account/user/user.ts", "./user-state.ts"],
      ["actors/account/user/user.ts", "../../runtime/kinds/define-actor.ts"],
      ["actors/oauth/oauth-grant/a.ts", "../../account/lib/hashes/same-hash.ts"],
      ["actors/rendering/workers/render/render.ts", "../../../egress/guard.ts"],
      ["actors/rendering/workers/render/render.ts", "../../lib/browser/browser-pool.ts"],
      ["actors/crawl/workers/crawl-page/a.ts", "../../../rendering/lib/browser/browser-pool.ts"],
      ["actors/main.ts", "./account/user/user.ts"],
      ["actors/apps/open-agents.ts", "./agent/agent.ts"],
      ["actors/apps/package/agent.ts", "../../../schemas/kebab.ts"],
      ["actors/apps/package/agent.ts", "../process/open-agent.ts"],
      ["actors/apps/process/schedules.ts", "croner"],
      ["actors/apps/lib/app-host/a.ts", "../../process/arguments.ts"],
      ["deploy/streams.ts", "../actors/runtime/bus/bus.ts"],
      ["scripts/roles.ts", "../gateway/main.ts"],
      ["gateway/a.test.ts", "../actors/account/user/user.ts"],
    ] as const;
    for (const [path, target] of allowed) {
      it(`importsPointOneWay() allows ${target} in ${path}`, () => {
        for (const statement of importsOf(target)) {
          expect(importsPointOneWay({ path, text: statement }), statement).to.deep.equal([]);
        }
      });
    }
  });

  it("importsHaveNoCircle() holds", () => {
    expect(importsHaveNoCircle(sources)).to.deep.equal([]);
  });
  it("importsHaveNoCircle() names circles of files and of rooms, types included", () => {
    const file = (path: string, target: string): SourceFile => ({
      path,
      text: `import type { A } from "${target}";`,
    });
    const files = [file("gateway/a.ts", "./b.ts"), file("gateway/b.ts", "./a.ts")];
    expect(importsHaveNoCircle(files)).to.deep.equal(["circle: gateway/a.ts, gateway/b.ts"]);
    const rooms = [
      file("actors/crawl/lib/a/one.ts", "../b/two.ts"),
      file("actors/crawl/lib/b/three.ts", "../a/four.ts"),
    ];
    const circle = "circle: actors/crawl/lib/a, actors/crawl/lib/b";
    expect(importsHaveNoCircle(rooms)).to.deep.equal([circle]);
    expect(importsHaveNoCircle([file("gateway/a.ts", "./b.ts")])).to.deep.equal([]);
  });

  it("commentsAreClear() holds", () => holds(sources, commentsAreClear));
  it("commentsAreClear() refuses fragments and vague phrases", () => {
    for (const comment of [
      "/** Of an answer with this status. */",
      "// The host is told when it ends.",
      "/**\n * The host\n * is told when it ends.\n */",
    ]) {
      fails(commentsAreClear, "scripts/a.ts", comment);
    }
    passes(commentsAreClear, "scripts/a.ts", "/** Notifies the host when the process ends. */");
    passes(commentsAreClear, "scripts/a.ts", 'const text = "so many";');
  });

  it("onlyRuntimeKnowsNats() holds", () => holds(sources, onlyRuntimeKnowsNats));
  it("onlyRuntimeKnowsNats() refuses the client in a kind and in the gateway", () => {
    for (const path of [
      "actors/account/user/user.ts",
      "gateway/app.ts",
      "schemas/account/user.ts",
    ]) {
      fails(onlyRuntimeKnowsNats, path, 'import { connect } from "@nats-io/transport-node";');
    }
    passes(onlyRuntimeKnowsNats, "actors/runtime/bus/bus.ts", 'import "@nats-io/kv";');
  });

  it("productionImportsNoTest() holds", () => holds(sources, productionImportsNoTest));
  it("productionImportsNoTest() refuses helpers, suites and packages of tests", () => {
    for (const target of ["./testing/child-program.ts", "./b.test.ts", "./b.contract.ts", "chai"]) {
      fails(productionImportsNoTest, "scripts/a.ts", `import { b } from "${target}";`);
      passes(productionImportsNoTest, "scripts/a.test.ts", `import { b } from "${target}";`);
    }
  });

  it("opensWithSentence() holds", () => holds(sources, opensWithSentence));
  it("opensWithSentence() refuses a file that begins with anything else or with an empty comment", () => {
    for (const text of [
      'import "a";',
      "// Does it.\n",
      "/* Does it. */",
      "/** */",
      "/** words */",
    ]) {
      fails(opensWithSentence, "scripts/a.ts", text);
    }
    passes(opensWithSentence, "scripts/a.ts", "/** Does it. */\n");
    passes(
      opensWithSentence,
      "scripts/a.ts",
      "#!/usr/bin/env node\n/**\n * Does it\n * all.\n */\n",
    );
  });

  it("debtsNameAnIssue() holds", () => holds(sources, debtsNameAnIssue));
  it("debtsNameAnIssue() refuses a debt without an issue", () => {
    const debt = "TO".concat("DO");
    fails(debtsNameAnIssue, "scripts/a.ts", `// ${debt}: later`);
    fails(debtsNameAnIssue, "scripts/a.ts", `// ${debt}(12)`);
    fails(debtsNameAnIssue, "scripts/a.ts", `// ${"FIX"}ME`);
    passes(debtsNameAnIssue, "scripts/a.ts", `// ${debt}(12): keeps two copies, costs memory.`);
  });

  it("namesNoMachinePath() holds", () => holds(files, namesNoMachinePath));
  it("namesNoMachinePath() refuses folders of this machine and addresses of a registry", () => {
    for (const folder of ["work", "root", "home/me", "Users/me", "tmp/w"]) {
      fails(namesNoMachinePath, "README.md", `see /${folder}/file`);
    }
    fails(namesNoMachinePath, "package-lock.json", `"${"resolved"}": "https://host/a.tgz"`);
    passes(namesNoMachinePath, "README.md", "a/work/b, $HOME/work/b, https://a.example/home/");
  });

  it("isNamedInKebabCase() holds", () => holds(sources, isNamedInKebabCase));
  it("isNamedInKebabCase() refuses other cases", () => {
    for (const name of ["KvStore.ts", "kv_store.ts", "kvStore.test.ts", "-kv.ts", "kv--store.ts"]) {
      fails(isNamedInKebabCase, `actors/${name}`, "");
    }
    for (const name of ["kv-store.ts", "kv-store.test.ts", "kv2.contract.ts"]) {
      passes(isNamedInKebabCase, `actors/${name}`, "");
    }
  });

  it("isShort() holds", () => holds(sources, isShort));
  it("isShort() accepts 400 lines and refuses 401, except in tests", () => {
    passes(isShort, "scripts/a.ts", "\n".repeat(399).concat("end\n"));
    fails(isShort, "scripts/a.ts", "\n".repeat(400).concat("end\n"));
    passes(isShort, "scripts/a.test.ts", "\n".repeat(400).concat("end\n"));
  });

  it("variablesAreDocumented() holds", function () {
    const readme = files.filter(({ path }) => path === "README.md");
    if (readme.length === 0) return this.skip();
    const readers = files.filter(({ path }) => path.endsWith(".ts") || path === "scripts/setup");
    const documents = files.filter(({ path }) => path.endsWith(".md"));
    expect(variablesAreDocumented(readers, documents)).to.deep.equal([]);
  });
  it("variablesAreDocumented() names variables that are only read or only documented", () => {
    const one = (path: string, text: string): SourceFile[] => [{ path, text }];
    const [a, b] = [`${"TRUNK"}LINE_A`, `${"TRUNK"}LINE_B`];
    expect(variablesAreDocumented(one("a.ts", `env.${a}`), one("README.md", b))).to.deep.equal([
      `${a} is read but not documented`,
      `${b} is documented but not read`,
    ]);
    expect(variablesAreDocumented(one("a.ts", a), one("README.md", `\`${a}\``))).to.deep.equal([]);
  });
});

function repositoryFiles(): SourceFile[] {
  const command = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const listed = execFileSync("git", command, { cwd: REPOSITORY, encoding: "utf8" }).split("\0");
  return listed
    .filter((path) => path !== "" && existsSync(join(REPOSITORY, path)))
    .map((path) => ({ path, text: readFileSync(join(REPOSITORY, path), "utf8") }));
}

type Rule = (file: SourceFile) => string[];

function holds(files: SourceFile[], rule: Rule): void {
  expect(files.flatMap(rule)).to.deep.equal([]);
}

function fails(rule: Rule, path: string, text: string): void {
  expect(rule({ path, text }), text).to.have.length(1);
}

function passes(rule: Rule, path: string, text: string): void {
  expect(rule({ path, text }), text).to.deep.equal([]);
}

/** Returns every form of an import of the target. */
function importsOf(target: string): string[] {
  return [
    `import { a } from "${target}";`,
    `import type { A } from "${target}";`,
    `import {\n  a,\n  b,\n} from "${target}";`,
    `import a, * as b from "${target}";`,
    `import "${target}";`,
    `export { a } from "${target}";`,
    `export * from "${target}";`,
    `const a = await import("${target}");`,
  ];
}
