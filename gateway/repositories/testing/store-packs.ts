/** Gives a repository packs of a working copy without a push for each, to bring it near the limit of packs quickly. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { REPO_BYTES_MAX, SWAP_PACKS_MAX } from "../../../schemas/repositories/limits.ts";
import type { RefCommand } from "../../../schemas/repositories/ref-command.ts";
import { commitPush } from "../packs/commit-push.ts";
import { withWhole } from "../packs/pack-store.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  type GitWorld,
  type TestRepo,
} from "./git-world.ts";

/** Packs that are stored at the same time. */
const STORED_AT_ONCE = 16;

/** Returns the packs of a working copy: the paths without their suffix. */
export async function packsIn({ folder }: Checkout): Promise<string[]> {
  const packs = join(folder, ".git/objects/pack");
  const names = await readdir(packs);
  return names
    .filter((name) => name.endsWith(".idx"))
    .map((name) => join(packs, name.slice(0, -".idx".length)));
}

/**
 * Stores packs and names them in the repository, as many pushes do, but with SWAP_PACKS_MAX packs in each message.
 * `commands` are fast-forwards of refs that the repository has. They take effect together with the last packs.
 */
export async function storePacks(
  world: GitWorld,
  gateway: GitGateway,
  repo: TestRepo,
  packs: readonly string[],
  commands: readonly RefCommand[],
): Promise<void> {
  const { signal } = new AbortController();
  const store = gateway.service.parts.packs;
  const put = (path: string) =>
    store.put(ACCOUNT, withWhole({ pack: `${path}.pack`, index: `${path}.idx` }), signal);
  for (let from = 0; from < packs.length; from += SWAP_PACKS_MAX) {
    const some = packs.slice(from, from + SWAP_PACKS_MAX);
    const kept = [];
    for (let at = 0; at < some.length; at += STORED_AT_ONCE) {
      kept.push(...(await Promise.all(some.slice(at, at + STORED_AT_ONCE).map(put))));
    }
    const isLast = from + SWAP_PACKS_MAX >= packs.length;
    // A message without a command that changes a ref would name no packs.
    const ref = `refs/tags/stored-${from}`;
    const value = commands[0]?.old ?? ZERO_ID;
    const moved = isLast ? commands : [{ old: ZERO_ID, value, ref }];
    const faults = await commitPush(world.actors, repo.id, {
      ...{ commands: moved, atomic: true, generation: 0, packs: kept },
      ...{ forward: moved.map((_, number) => number), bytes: 0, bytesMax: REPO_BYTES_MAX },
    });
    expect(faults).to.deep.equal(moved.map(() => undefined));
  }
}
