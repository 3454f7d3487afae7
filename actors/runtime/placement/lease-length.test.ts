import { expect } from "chai";
import { LEASE_TTL_MS } from "../../../schemas/limits.ts";
import { LEASE_TTL_MS_MAX, LeaseLength, RENEWALS_KEPT } from "./lease-length.ts";

const USUAL_MS = 520;

describe("LeaseLength", () => {
  it("is the usual one at first, and while renewals take up to half of it", () => {
    const length = new LeaseLength();
    expect(length.ms).to.equal(LEASE_TTL_MS);
    length.tried(USUAL_MS);
    length.tried(LEASE_TTL_MS / 2);
    expect(length.ms).to.equal(LEASE_TTL_MS);
  });

  it("is four times the slowest renewal past that, in whole seconds and up to the maximum", () => {
    const length = new LeaseLength();
    length.tried(LEASE_TTL_MS / 2 + 1);
    expect(length.ms).to.equal(5_000);
    length.tried(LEASE_TTL_MS_MAX / 4);
    expect(length.ms).to.equal(LEASE_TTL_MS_MAX);
    length.tried(LEASE_TTL_MS_MAX);
    expect(length.ms).to.equal(LEASE_TTL_MS_MAX);
  });

  it("is the usual one again after enough renewals in time, and not one earlier", () => {
    const length = new LeaseLength();
    length.tried(1_500);
    for (let count = 1; count < RENEWALS_KEPT; count++) length.tried(USUAL_MS);
    expect(length.ms).to.equal(6_000);
    length.tried(USUAL_MS);
    expect(length.ms).to.equal(LEASE_TTL_MS);
  });
});
