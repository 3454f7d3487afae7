import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { ImportTurns } from "./import-turns.ts";

const never = new AbortController().signal;

/** Imports that wait in turns. "a1" is an import of account a. */
class TestImports {
  readonly #turns: ImportTurns;
  readonly started: string[] = [];
  readonly #leave = new Map<string, () => void>();

  constructor(slots: number) {
    this.#turns = new ImportTurns(slots);
  }

  async begin(...names: string[]): Promise<void> {
    for (const name of names) {
      void this.#turns.enter(name.slice(0, 1), never).then((leave) => {
        this.started.push(name);
        this.#leave.set(name, leave);
      });
    }
    await turn();
  }

  async end(...names: string[]): Promise<void> {
    for (const name of names) {
      this.#leave.get(name)?.();
      await turn();
    }
  }
}

describe("turns of imports", () => {
  it("one account runs all but one, and the last slot is for another account", async () => {
    const imports = new TestImports(3);
    await imports.begin("a1", "a2", "a3", "a4");
    expect(imports.started).to.deep.equal(["a1", "a2"]);
    await imports.begin("b1", "b2");
    expect(imports.started).to.deep.equal(["a1", "a2", "b1"]);
    await imports.end("a1");
    expect(imports.started, "one slot is free, and both accounts have one").to.have.length(3);
    await imports.end("b1");
    expect(imports.started).to.deep.equal(["a1", "a2", "b1", "b2"]);
    await imports.end("b2");
    expect(imports.started).to.deep.equal(["a1", "a2", "b1", "b2", "a3"]);
  });

  it("an account that waits comes before the further imports of others", async () => {
    const imports = new TestImports(3);
    await imports.begin("a1", "b1", "c1", "a2", "a3", "b2", "c2", "d1");
    expect(imports.started).to.deep.equal(["a1", "b1", "c1"]);
    await imports.end("a1");
    expect(imports.started.at(-1)).to.equal("d1");
    await imports.end("b1");
    expect(imports.started.at(-1)).to.equal("a2");
    await imports.end("c1", "d1");
    expect(imports.started).to.deep.equal(["a1", "b1", "c1", "d1", "a2", "b2", "c2"]);
  });

  it("an import that is aborted while it waits takes no slot", async () => {
    const turns = new ImportTurns(1);
    const leave = await turns.enter("a", never);
    const gone = new AbortController();
    const left = turns.enter("b", gone.signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const next = turns.enter("c", never);
    gone.abort("gone");
    expect(await left).to.equal("gone");
    expect(await turns.enter("b", gone.signal).catch((reason: unknown) => reason)).to.equal("gone");
    leave();
    (await next)();
    (await turns.enter("a", never))();
  });
});
