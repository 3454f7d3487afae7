import { expect } from "chai";
import { ZERO_ID } from "./git-names.ts";
import { COMMANDS_BYTES_MAX, LFS_BATCH_MAX, PUSH_PARTS_MAX, SWAP_PACKS_MAX } from "./limits.ts";
import { commandsBytes, repo } from "./repo.ts";

const A = "a".repeat(40);
const ID = "1".repeat(32);
const ADDRESS = { accountId: "a".repeat(32), namespace: "space", name: "repo" };
const pack = (i: number) => ({
  sha256: i.toString(16).padStart(64, "0"),
  bytes: 1,
  indexBytes: 1,
});
const packs = (count: number) => Array.from({ length: count }, (_, i) => pack(i));
const accepts = (message: keyof typeof repo.messages, input: unknown) =>
  repo.messages[message].input.safeParse(input).success;

describe("limits of messages to a repository", () => {
  const swap = {
    push: ID,
    commands: [],
    parts: 0,
    atomic: false,
    generation: 0,
    forward: [],
    packs: [],
  };

  it("COMMANDS_BYTES_MAX bytes of commands fit one message, and more are sent in parts", () => {
    const command = (chars: number) => `${ZERO_ID} ${A} refs/heads/${"x".repeat(chars)}`;
    const many = Array.from({ length: 180 }, () => command(900));
    let room = COMMANDS_BYTES_MAX - commandsBytes(many);
    // Each command takes two quotes and a comma more.
    const each = command(0).length + 3;
    for (; room > 2 * (each + 900); room -= each + 900) many.push(command(900));
    const half = Math.floor(room / 2);
    many.push(command(half - each), command(room - half - each));
    const most = many;
    expect(commandsBytes(most)).to.equal(COMMANDS_BYTES_MAX);
    for (const message of ["swap", "stage"] as const) {
      const input = (given: string[]) =>
        message === "swap" ? { ...swap, commands: given } : { push: ID, part: 0, commands: given };
      expect(accepts(message, input(most))).to.equal(true);
      expect(accepts(message, input([`${most[0]}x`, ...most.slice(1)]))).to.equal(false);
    }
  });

  it("SWAP_PACKS_MAX packs are added or removed in one message, and no more", () => {
    for (const [count, taken] of [
      [SWAP_PACKS_MAX, true],
      [SWAP_PACKS_MAX + 1, false],
    ] as const) {
      expect(accepts("swap", { ...swap, packs: packs(count) })).to.equal(taken);
      const compact = { version: 1, generation: 0, prune: false };
      const replaced = packs(count).map(({ sha256 }) => sha256);
      expect(accepts("compact", { ...compact, replaced, packs: [] })).to.equal(taken);
      expect(
        accepts("compact", { ...compact, replaced: [pack(0).sha256], packs: packs(count) }),
      ).to.equal(taken);
    }
  });

  it("a push has PUSH_PARTS_MAX parts, numbered from 0", () => {
    const part = (number: number) => accepts("stage", { push: ID, part: number, commands: [] });
    expect([part(0), part(PUSH_PARTS_MAX - 1), part(PUSH_PARTS_MAX), part(-1)]).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
    expect(accepts("swap", { ...swap, parts: PUSH_PARTS_MAX })).to.equal(true);
    expect(accepts("swap", { ...swap, parts: PUSH_PARTS_MAX + 1 })).to.equal(false);
  });

  it("one message looks up LFS_BATCH_MAX large files", () => {
    const find = (count: number) =>
      accepts("findLfsObjects", {
        address: ADDRESS,
        oids: packs(count).map(({ sha256 }) => sha256),
      });
    expect([find(LFS_BATCH_MAX), find(LFS_BATCH_MAX + 1)]).to.deep.equal([true, false]);
  });
});
