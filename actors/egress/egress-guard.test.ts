import { expect } from "chai";
import { createAddressPolicy } from "./address-policy.ts";
import { createEgressGuard } from "./egress-guard.ts";

describe("check() of the egress guard", () => {
  const guard = createEgressGuard({
    policy: createAddressPolicy(),
    lookup: async (name) => (name === "public.example" ? ["192.88.98.1"] : ["1.1.1.1", "10.0.0.1"]),
  });
  const { signal } = new AbortController();
  const check = (host: string, port = 443) =>
    guard.check({ host, port }, { signal }).catch((error: Error) => error.message);

  it("returns the addresses of an allowed target", async () => {
    expect(await check("public.example")).to.deep.equal(["192.88.98.1"]);
    expect(await check("[2606:4700::1111]")).to.deep.equal(["2606:4700::1111"]);
  });

  it("refuses what connect() refuses: blocked ports and hosts with an address that is not public", async () => {
    const text = "its address is not one this service fetches";
    expect(await check("public.example", 22)).to.contain(text);
    expect(await check("inside.example")).to.contain(text);
    expect(await check("[::1]")).to.contain(text);
  });
});
