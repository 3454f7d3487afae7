import { expect } from "chai";
import { coversMembership } from "./covers-membership.ts";

const [first, second] = ["1".repeat(32), "2".repeat(32)];

describe("coversMembership()", () => {
  it("is true for a member with one of the invitations of the consent, and false with another one", () => {
    const consent = { invitationIds: [first] };
    expect(coversMembership(consent, { invitationId: first })).to.equal(true);
    expect(coversMembership(consent, { invitationId: second })).to.equal(false);
    expect(coversMembership({ invitationIds: [] }, { invitationId: first })).to.equal(false);
  });

  it("is true for a member without an invitation", () => {
    for (const consent of [{ invitationIds: [first] }, { invitationIds: [] }, {}]) {
      expect(coversMembership(consent, {})).to.equal(true);
    }
  });

  it("is false for a member with an invitation if a grant of an earlier version stores none", () => {
    expect(coversMembership({}, { invitationId: first })).to.equal(false);
  });
});
