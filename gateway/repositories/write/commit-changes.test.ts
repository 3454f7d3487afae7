import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { treeOf } from "../testing/git-world.ts";
import { applyChanges, COMMIT_TREES_BYTES_MAX, makeObject } from "./commit-changes.ts";

const ID = "1".repeat(40);
const empty = Buffer.alloc(0);

describe("applyChanges()", () => {
  /** Returns a reader of these existing trees, and their ids. */
  function store(...trees: Buffer[]) {
    const objects = trees.map((content) => makeObject("tree", content));
    const find = async (id: string) => {
      const found = objects.find((object) => object.id === id);
      return found && { ...found, bytes: found.content.length };
    };
    return { ids: objects.map(({ id }) => id), reader: { head: find, read: find } };
  }

  it("reads and writes directories of COMMIT_TREES_BYTES_MAX bytes in all, and refuses one more", async () => {
    // Each added entry makes the resulting tree larger by the same number of bytes.
    const added = 2 * treeOf([{ mode: "100644", name: "a", id: ID }]).length;
    const bytes = (COMMIT_TREES_BYTES_MAX - added) / 2;
    const rest = bytes - treeOf([{ mode: "100644", name: "", id: ID }]).length;
    const { ids, reader } = store(treeOf([{ mode: "100644", name: "z".repeat(rest), id: ID }]));
    const change = (...paths: string[]) =>
      applyChanges(
        reader,
        ids[0],
        paths.map((path) => ({ path, content: empty })),
      ).catch((error: unknown) => {
        if (error instanceof ActorError) return error.code;
        throw error;
      });
    expect(await change("a", "b")).to.have.property("root");
    expect(await change("a", "bb")).to.equal("object_too_large");
  });

  it("counts a directory at each place where it is changed", async () => {
    const large = treeOf([{ mode: "100644", name: "z".repeat(1024 * 1024), id: ID }]);
    const [id = ""] = store(large).ids;
    const names = Array.from({ length: 100 }, (_, i) => `d${String(i).padStart(2, "0")}`);
    const root = treeOf(names.map((name) => ({ mode: "40000", name, id })));
    const { ids, reader } = store(root, large);
    const changes = names.map((name) => ({ path: `${name}/a`, content: empty }));
    const refused = await applyChanges(reader, ids[0], changes).catch((error: unknown) => error);
    expect(refused).to.have.property("code", "object_too_large");
    expect(await applyChanges(reader, ids[0], changes.slice(0, 10))).to.have.property("root");
  });

  it("changes a directory of any size without keeping other work of the process from running", async () => {
    const ENTRIES = 200_000;
    const entries = Array.from({ length: ENTRIES }, (_, number) => ({
      ...{ mode: "100644", name: String(number).padStart(6, "0"), id: ID },
    }));
    const { ids, reader } = store(treeOf(entries));
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const changes = [{ path: "000007", content: Buffer.from("new") }];
    const { root, made } = await applyChanges(reader, ids[0], changes);
    isOver = true;
    const changed = made.find(({ id }) => id === root);
    expect(changed?.content.length).to.equal(treeOf(entries).length);
    // The tree is read twice, and other work runs after every 20,000 entries.
    expect(turns).to.be.at.least(ENTRIES / 20_000);
  });
});
