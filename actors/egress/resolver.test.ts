import { expect } from "chai";
import { createAddressPolicy } from "./address-policy.ts";
import {
  createResolver,
  EGRESS_NAME_KEPT_MS,
  EGRESS_NAMES_MAX,
  type Lookup,
  type ResolverOptions,
} from "./resolver.ts";

const signal = new AbortController().signal;

describe("Resolve", () => {
  it("resolve() returns all addresses of a name", async () => {
    const resolve = resolverOf(async () => ["1.1.1.1", "2606:4700::1"]);
    expect(await resolve("name.test", signal)).to.deep.equal(["1.1.1.1", "2606:4700::1"]);
  });

  for (const answers of [
    ["10.0.0.1"],
    ["1.1.1.1", "10.0.0.1"],
    ["1.1.1.1", "fd00::1"],
    ["fe80::1%lo"],
  ]) {
    it(`resolve() refuses a name with the answers ${answers.join(", ")}, and says why in the log only`, async () => {
      const error = await refusalOf(resolverOf(async () => answers)("name.test", signal));
      expect(error).to.include({
        code: "address_refused",
        message: "Cannot fetch from name.test: its address is not one this service fetches",
      });
      expect(error.detail).to.match(new RegExp(`^${answers.at(-1)} is in the range `));
    });
  }

  it("resolve() checks a literal address without a lookup", async () => {
    const resolve = resolverOf(() => Promise.reject(new Error("must not be asked")));
    expect(await resolve("1.1.1.1", signal)).to.deep.equal(["1.1.1.1"]);
    expect(await refusalOf(resolve("::1", signal))).to.include({ code: "address_refused" });
  });

  it("resolve() uses the system's resolver, which knows this machine's own names", async () => {
    const resolve = createResolver({ policy: createAddressPolicy() });
    expect(await refusalOf(resolve("localhost", signal))).to.include({ code: "address_refused" });
  });

  it("resolve() reports that a name has no address", async () => {
    expect(await refusalOf(resolverOf(async () => [])("name.test", signal))).to.include({
      code: "name_not_resolved",
    });
  });

  it("resolve() shares a lookup, and caches its result for a limited time", async () => {
    let lookups = 0;
    let time = 0;
    const lookup = async () => [`1.1.1.${++lookups}`];
    const resolve = resolverOf(lookup, { now: () => time });
    await Promise.all([resolve("name.test", signal), resolve("name.test", signal)]);
    time = EGRESS_NAME_KEPT_MS - 1;
    expect(await resolve("name.test", signal)).to.deep.equal(["1.1.1.1"]);
    time = EGRESS_NAME_KEPT_MS;
    expect(await resolve("name.test", signal)).to.deep.equal(["1.1.1.2"]);
  });

  it("resolve() looks up again after a failure", async () => {
    let lookups = 0;
    const resolve = resolverOf(async () => {
      lookups += 1;
      if (lookups === 1) throw Object.assign(new Error("try again"), { code: "EAI_AGAIN" });
      return ["1.1.1.1"];
    });
    expect(await refusalOf(resolve("name.test", signal))).to.include({ code: "name_not_resolved" });
    expect(await resolve("name.test", signal)).to.deep.equal(["1.1.1.1"]);
  });

  it("resolve() caches names up to the limit, and evicts the oldest", async () => {
    const asked: string[] = [];
    const resolve = resolverOf(async (name) => {
      asked.push(name);
      return ["1.1.1.1"];
    });
    for (let index = 0; index < EGRESS_NAMES_MAX; index += 1)
      await resolve(`${index}.test`, signal);
    await resolve("0.test", signal);
    expect(asked).to.have.lengthOf(EGRESS_NAMES_MAX);
    await resolve("one-more.test", signal);
    await resolve("0.test", signal);
    expect(asked.slice(EGRESS_NAMES_MAX)).to.deep.equal(["one-more.test", "0.test"]);
  });

  it("resolve() ends at its deadline and when its signal aborts", async () => {
    const resolve = resolverOf(() => new Promise(() => {}), { resolveMs: 5 });
    expect(await refusalOf(resolve("slow.test", signal))).to.include({
      code: "navigation_timed_out",
    });
    const aborted = AbortSignal.abort(new Error("left"));
    expect(await refusalOf(resolve("slow.test", aborted)))
      .to.have.property("detail")
      .that.includes("left");
  });
});

function resolverOf(lookup: Lookup, options: Partial<ResolverOptions> = {}) {
  return createResolver({ policy: createAddressPolicy(), lookup, ...options });
}

async function refusalOf(promise: Promise<unknown>) {
  try {
    await promise;
  } catch (error) {
    return error as Error & { code: string; detail: string };
  }
  throw new Error("It was not refused");
}
