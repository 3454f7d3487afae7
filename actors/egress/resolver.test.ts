import { expect } from "chai";
import { createAddressPolicy } from "./address-policy.ts";
import { NoLookupSlotError } from "./egress-error.ts";
import { LookupSlots, lookupsOfOwnerMax } from "./lookup-slots.ts";
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

  it("resolve() counts a lookup for its owner until the lookup itself ends, not only the wait for it", async () => {
    const lookups = new Map<string, (addresses: string[]) => void>();
    const lookup = (name: string) =>
      name === "fine.test"
        ? Promise.resolve(["1.1.1.1"])
        : new Promise<string[]>((resolve) => lookups.set(name, resolve));
    const slots = new LookupSlots(24);
    const resolve = resolverOf(lookup, { slots, resolveMs: 20 });
    const most = lookupsOfOwnerMax(24);
    const silent = Array.from({ length: most + 1 }, (_, index) => `${index}.silent.test`);
    const refused = await Promise.all(
      silent.map((name) => refusalOf(resolve(name, signal, "hostile"))),
    );
    for (const { code } of refused) expect(code).to.equal("navigation_timed_out");
    // One lookup past the limit was not started, and its caller got an error that says so.
    expect([...lookups.keys()]).to.deep.equal(silent.slice(0, most));
    expect(refused.at(-1)?.message).to.equal(
      `Cannot fetch from ${most}.silent.test: too many other names did not resolve in time`,
    );
    // Its class says that the name itself may be fine. The names that were looked up are the cause of their timeouts.
    const isWithoutSlot = refused.map((error) => error instanceof NoLookupSlotError);
    expect(isWithoutSlot).to.deep.equal([...Array(most).fill(false), true]);
    expect(slots.taken).to.equal(most);
    // Another owner goes on, also with a name that the first owner could not start.
    expect(await resolve("fine.test", signal, "other")).to.deep.equal(["1.1.1.1"]);
    const shared = resolve(`${most}.silent.test`, signal, "other");
    lookups.get(`${most}.silent.test`)?.(["1.1.1.2"]);
    expect(await shared).to.deep.equal(["1.1.1.2"]);
    // When a lookup has ended, its owner may start another one.
    lookups.get("0.silent.test")?.(["1.1.1.3"]);
    expect(await resolve("0.silent.test", signal, "hostile")).to.deep.equal(["1.1.1.3"]);
    const next = refusalOf(resolve("next.silent.test", signal, "hostile"));
    expect(lookups.has("next.silent.test")).to.equal(true);
    await next;
  });

  it("resolve() lets requests for one name share the lookup of the first one, without a slot each", async () => {
    const slots = new LookupSlots(2);
    const { promise, resolve: answer } = Promise.withResolvers<string[]>();
    const resolve = resolverOf(() => promise, { slots });
    const asked = ["a", "a", "b", "c"].map((owner) => resolve("name.test", signal, owner));
    expect(slots.taken).to.equal(1);
    answer(["1.1.1.1"]);
    for (const addresses of await Promise.all(asked)) expect(addresses).to.deep.equal(["1.1.1.1"]);
    expect(slots.taken).to.equal(0);
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
