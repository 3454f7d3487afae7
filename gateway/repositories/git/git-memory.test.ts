import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { GIT_NAMES_KEPT, GIT_STDERR_CHARS_MAX } from "../../../schemas/repositories/limits.ts";
import { ManifestReader } from "../cache/manifest-reader.ts";
import { runGit } from "../process/git-process.ts";
import { RepoFinder } from "../repo-finder.ts";

const signal = new AbortController().signal;
const address = (name: string) => ({ accountId: "a".repeat(32), namespace: "space", name });

/** Returns a client whose calls all get their reply from `answer`, and the list of the called messages. */
function actorsThat(answer: (message: string, input: unknown) => unknown) {
  const asked: string[] = [];
  const call = async (_contract: unknown, _key: string, message: string, input: unknown) => {
    asked.push(message);
    return answer(message, input);
  };
  return { asked, actors: { call } as unknown as ActorClient };
}

describe("bounded memory of a git gateway", () => {
  it("keeps GIT_NAMES_KEPT names of repositories, and evicts the least recently found", async () => {
    const { asked, actors } = actorsThat(() => ({ id: "0".repeat(16) }));
    const finder = new RepoFinder(actors);
    const find = (name: string) => finder.with(address(name), signal, async (id) => id);
    for (let i = 0; i < GIT_NAMES_KEPT; i++) await find(`r${i}`);
    expect(asked).to.have.length(GIT_NAMES_KEPT);
    await find("r0");
    expect(asked, "known").to.have.length(GIT_NAMES_KEPT);
    await find("one-more");
    await find("r1");
    expect(asked, "still known").to.have.length(GIT_NAMES_KEPT + 1);
    await find("r0");
    expect(asked, "forgotten").to.have.length(GIT_NAMES_KEPT + 2);
  });

  it("resolves a name again when its repository no longer has it", async () => {
    let current = "0".repeat(16);
    const { asked, actors } = actorsThat(() => ({ id: current }));
    const finder = new RepoFinder(actors);
    const find = () =>
      finder.with(address("r"), signal, async (id) => {
        if (id !== current) throw new ActorError("not_found", "Repository not found");
        return id;
      });
    await find();
    current = "1".repeat(16);
    expect(await find()).to.equal(current);
    expect(asked).to.have.length(2);
  });

  it("keeps manifests of up to refsMax refs, and reads the others from their beginning", async () => {
    const refs = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`refs/heads/${i}`, "x"]));
    const afters: number[] = [];
    const { actors } = actorsThat((_message, input) => {
      const { after } = input as { after: { version: number } };
      afters.push(after.version);
      const whole = after.version === 0;
      return {
        ...{ version: 1, generation: 0, head: "refs/heads/main", readOnly: false, shallow: [] },
        ...{ protectedRefs: [], status: "ready", treeDepth: 0, bytes: 0, packs: [] },
        ...{ packsWhole: whole, rows: whole ? [{ row: 0, refs }] : [], cursor: after, done: true },
      };
    });
    // Each manifest counts as one more than its number of refs.
    const reader = new ManifestReader(actors, { refsMax: 20 });
    const read = (id: string) => reader.read(id, address(id), signal);
    await read("a");
    await read("b");
    await read("a");
    expect(afters, "both are known").to.deep.equal([0, 0, 1]);
    await read("c");
    await read("a");
    expect(afters.slice(3), "the one used last is known").to.deep.equal([0, 1]);
    await read("b");
    expect(afters.slice(5), "the other is not").to.deep.equal([0]);
  });

  it("keeps the last GIT_STDERR_CHARS_MAX characters of a process's error output", async () => {
    for (const chars of [GIT_STDERR_CHARS_MAX, GIT_STDERR_CHARS_MAX + 1]) {
      const said = `head -c ${chars - 1} /dev/zero | tr '\\0' x >&2; printf y >&2; exit 3`;
      const config = { "alias.say": `!${said}` };
      const { stderr, code } = await runGit(["say"], { cwd: "/", config, signal });
      expect(code).to.equal(3);
      expect(stderr).to.have.length(GIT_STDERR_CHARS_MAX);
      expect(stderr.endsWith("xy")).to.equal(true);
    }
  });
});
