import { expect } from "chai";
import { ArtifactsWorld } from "../../../gateway/testing/artifacts-world.ts";
import { withoutReferences } from "../../../gateway/testing/declared-answers.ts";
import { ArtifactsError } from "../package/api-error.ts";
import type { Artifacts } from "../package/artifacts.ts";
import { artifactsBinding } from "./artifacts-binding.ts";

const HASH = "0".repeat(40);

interface Operation {
  operationId: string;
  parameters: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: { properties: object } }> };
}

/** The documented parameters of each operation of the repositories API, by operation name. */
function documented({ document }: ArtifactsWorld) {
  const { paths, components } = document;
  const schemas = components as Parameters<typeof withoutReferences>[1];
  const read = withoutReferences(paths, schemas) as Record<string, Record<string, Operation>>;
  const own = Object.entries(read).filter(([path]) => path.includes("/artifacts/"));
  return new Map(
    own.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, parameters, requestBody }]) => {
        const below = path.replace("/accounts/{account_id}", "");
        const pattern = below.replace(/\{path\}$/, ".+").replaceAll(/\{\w+\}/g, "[^/]+");
        const query = parameters.filter((one) => one.in === "query").map(({ name }) => name);
        const { schema } = requestBody?.content["application/json"] ?? {};
        const said = [...query, ...Object.keys(schema?.properties ?? {})];
        return [operationId, { pattern: new RegExp(`^${pattern}$`), method, said }] as const;
      }),
    ),
  );
}

/** Calls every method with all of its options. Whether the host grants the call does not matter here. */
const calls = (artifacts: Artifacts): (() => Promise<unknown>)[] => [
  () => artifacts.usage(),
  () => artifacts.namespaces.create("space"),
  () => artifacts.namespaces.get("space"),
  () => artifacts.namespaces.list({ limit: 1, cursor: "c" }),
  () => artifacts.create("first", { description: "d", readOnly: true, setDefaultBranch: "b" }),
  () => artifacts.list({ limit: 1, cursor: "c", search: "s", sort: "name", direction: "asc" }),
  () =>
    artifacts.import({
      source: { url: "https://elsewhere.example/r.git", branch: "b", depth: 1 },
      target: { name: "first", opts: { readOnly: true } },
    }),
  async () => {
    using repo = await artifacts.get("first");
    const person = { name: "n", email: "e" };
    const changes = [{ path: "a", content: "" }];
    const commit = { branch: "b", expected: null, base: "m", message: "m", changes };
    for (const call of [
      () => repo.info(),
      () =>
        repo.update({ description: "d", defaultBranch: "b", readOnly: true, protectedRefs: [] }),
      () => repo.fork("f", { description: "d", readOnly: true, defaultBranchOnly: true }),
      () => repo.prune(),
      () => repo.log({ ref: "b", limit: 1, offset: 1 }),
      () => repo.refs({ prefix: "refs/", limit: 1, cursor: "c" }),
      () => repo.diff("a", "b"),
      () => repo.readCommit(HASH),
      () => repo.readTree(HASH),
      () => repo.readBlob(HASH),
      () => repo.readFile({ ref: "b", path: "a/b" }),
      () => repo.readRaw({ ref: "b", path: "a/b" }),
      () => repo.archive("b", "zip"),
      () => repo.createCommit({ ...commit, author: person, committer: person, allow_empty: true }),
      () => repo.createToken("read", 600),
      () => repo.listTokens({ state: "all", page: 1, perPage: 1 }),
      () => repo.revokeToken("t"),
    ]) {
      await tried(call);
    }
  },
  () => artifacts.delete("first"),
  () => artifacts.namespaces.delete("space"),
];

async function tried(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof ArtifactsError)) throw error;
  }
}

describe("artifactsBinding", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());

  it("has a method for every operation of the REST API, and takes all that may be said to it", async () => {
    const operations = documented(world);
    const used = new Map<string, Set<string>>();
    const artifacts = artifactsBinding(
      {
        namespace: "space",
        async fetch(path, { method = "GET", headers, body } = {}) {
          const url = new URL(`${world.url}/v4/accounts/${world.accountId}${path}`);
          const below = path.replace(/\?.*/, "");
          const [[name] = [below]] = [...operations].filter(
            ([, one]) => one.pattern.test(below) && one.method === method.toLowerCase(),
          );
          const json = Object.keys(JSON.parse(String(body ?? "{}")));
          const said = [...(used.get(name) ?? []), ...url.searchParams.keys(), ...json];
          used.set(name, new Set(said));
          const asked = new Headers(headers);
          asked.set("authorization", `Bearer ${world.token}`);
          return fetch(url, { method, headers: asked, body: body ?? null });
        },
      },
      "space",
    );
    for (const call of calls(artifacts)) await tried(call);
    // `jurisdiction` counts as used: it has only one value, which is also its default.
    used.get("createNamespace")?.add("jurisdiction");
    const asRead = (all: Iterable<readonly [string, Iterable<string>]>) =>
      Object.fromEntries(Array.from(all, ([name, said]) => [name, [...said].sort()]));
    const expected = Array.from(operations, ([name, { said }]) => [name, said] as const);
    expect(asRead(used)).to.deep.equal(asRead(expected));
    expect(operations.size).to.be.at.least(26);
  });
});
