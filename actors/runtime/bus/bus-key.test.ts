import { nkeyAuthenticator, nkeys } from "@nats-io/transport-node";
import { expect } from "chai";
import { busAuthenticator, busPublicKey } from "./bus-key.ts";

const SEEDS = 20;

describe("the NKey of a user of the bus", () => {
  const seeds = Array.from({ length: SEEDS }, () =>
    new TextDecoder().decode(nkeys.createUser().getSeed()),
  );
  const bytes = (text: string) => new TextEncoder().encode(text);

  it("busPublicKey() returns the key that the library returns", () => {
    for (const seed of seeds) {
      expect(busPublicKey(seed), seed).to.equal(nkeys.fromSeed(bytes(seed)).getPublicKey());
    }
  });

  it("busAuthenticator() answers a challenge as the library does", () => {
    const nonce = "gBkOeAaeSEKGGHE";
    for (const seed of seeds) {
      const expected = nkeyAuthenticator(bytes(seed))(nonce);
      expect(busAuthenticator(seed)(nonce), seed).to.deep.equal(expected);
    }
  });

  it("refuses a seed with a wrong checksum", () => {
    const [seed = ""] = seeds;
    const wrong = seed.slice(0, -1) + (seed.endsWith("A") ? "Q" : "A");
    expect(() => busPublicKey(wrong)).to.throw();
    expect(() => busAuthenticator(wrong)).to.throw();
  });
});
