import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { REPOSITORY } from "../tools.ts";
import { startCommand, startVariables } from "./start-command.ts";

describe("startCommand()", () => {
  const [, ...rest] = startCommand();

  it("limits the heap, because garbage would otherwise grow to several times the used memory", () => {
    expect(rest.filter((flag) => flag.startsWith("--"))).to.deep.equal([
      "--max-semi-space-size=16",
      "--max-old-space-size=2000",
    ]);
  });

  it("equals the command of the image", () => {
    const text = readFileSync(join(REPOSITORY, "deploy/Containerfile"), "utf8");
    const command = JSON.parse(/^CMD (\[.*\])$/m.exec(text)?.[1] ?? "[]") as string[];
    expect(command.slice(1, -1)).to.deep.equal(rest.slice(0, -1));
  });

  it("sets the environment of the image", () => {
    const text = readFileSync(join(REPOSITORY, "deploy/Containerfile"), "utf8");
    expect(startVariables()).to.deep.equal({ UV_THREADPOOL_SIZE: "64", MALLOC_ARENA_MAX: "2" });
    for (const [name, value] of Object.entries(startVariables())) {
      expect(text).to.include(` ${name}=${value}`);
    }
  });
});
