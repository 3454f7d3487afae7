import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import type { Benchmark } from "./benchmark.ts";
import { readOptions } from "./options.ts";

const benchmarks: Benchmark[] = ["runtime-calls", "runtime-mail", "git"].map((name) => ({
  name,
  run: async () => [],
}));
const read = (...words: string[]) => readOptions(words, benchmarks);
const namesOf = (...words: string[]) => read(...words).picked.map(({ name }) => name);

describe("options of the benchmarks", () => {
  it("pick all benchmarks without a name, and otherwise those that begin with one", () => {
    expect(namesOf()).to.deep.equal(["runtime-calls", "runtime-mail", "git"]);
    expect(namesOf("runtime")).to.deep.equal(["runtime-calls", "runtime-mail"]);
    expect(namesOf("git", "runtime-m", "--json", "x")).to.deep.equal(["runtime-mail", "git"]);
  });

  it("refuse an unknown name beside a known one", () => {
    expect(() => read("git", "nonsense")).to.throw(/^Cannot run "nonsense": .*--help lists all$/);
  });

  it("refuse a number of servers that is none", () => {
    expect(read("--servers", "3").servers).to.equal("3");
    for (const servers of ["0", "three", "100", ""]) {
      expect(() => read(`--servers=${servers}`)).to.throw(/^--servers: expected/);
    }
  });
});

describe("the program of the benchmarks", function () {
  this.timeout(60_000);
  const run = (...words: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, "main.ts"), ...words], {
      encoding: "utf8",
    });

  it("prints its usage with all names", () => {
    const { status, stdout, stderr } = run("--help");
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: "" });
    expect(stdout).to.match(/^Usage: npm run bench/);
    for (const name of ["runtime-calls", "start-memory", "oauth", "sign-in", "backup"]) {
      expect(stdout).to.match(new RegExp(`^  ${name}$`, "m"));
    }
  });

  it("ends with one line and status 1 at an unknown option", () => {
    const { status, stdout, stderr } = run("--nonsense");
    expect({ status, stdout }).to.deep.equal({ status: 1, stdout: "" });
    expect(stderr).to.match(/^[^\n]*nonsense[^\n]*\n$/);
  });
});
