/**
 * Compares the packs and large files that repositories name with those that are stored. Both must agree after every
 * fault.
 */
import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../../actors/runtime/store/blob-store.ts";
import { lfsRow } from "../../../schemas/repositories/lfs.ts";
import { packRow, repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { ACCOUNT, type GitWorld, type TestRepo } from "./git-world.ts";

/** Returns the names of the rows of all packs and large files of one repository. */
export async function namedBy({ actors }: GitWorld, { id, name }: TestRepo): Promise<string[]> {
  const { packs } = await actors.call(repoContract, id, "manifest", {
    address: { accountId: ACCOUNT, namespace: "tests", name },
    after: { version: 0, row: -1 },
    packsAfter: 0,
  });
  const { objects } = await actors.call(repoContract, id, "listLfsObjects", {});
  return [...packs.map(({ sha256 }) => packRow(sha256)), ...objects.map(({ oid }) => lfsRow(oid))];
}

/** Returns all stored packs and large files, each by the name of the row that would name it. */
export async function storedIn({ world }: GitWorld): Promise<string[]> {
  const names = await new BlobStore(world.bus, systemClock).names("git");
  const prefix = `git.${ACCOUNT}.`;
  return [...names].map((name) => {
    const rest = name.slice(prefix.length);
    return rest.startsWith("lfs.") ? rest : packRow(rest);
  });
}

/** Uploads a large file. Returns its id, or undefined if the upload was refused. */
export async function uploadFile(url: string, repo: TestRepo): Promise<string | undefined> {
  const content = randomBytes(700_000);
  const oid = createHash("sha256").update(content).digest("hex");
  const { status } = await fetch(`${url}${repo.path}/info/lfs/objects/${oid}/${content.length}`, {
    method: "PUT",
    headers: { Authorization: `Bearer ${repo.token}` },
    body: content,
  });
  return status === 200 ? oid : undefined;
}

export async function expectFile(url: string, repo: TestRepo, oid: string): Promise<void> {
  const response = await fetch(`${url}${repo.path}/info/lfs/objects/${oid}`, {
    headers: { Authorization: `Bearer ${repo.token}` },
  });
  const content = Buffer.from(await response.arrayBuffer());
  expect(createHash("sha256").update(content).digest("hex")).to.equal(oid);
}
