import { expect } from "chai";
import { MEMBERS_PER_ACCOUNT_MAX } from "../../../schemas/account/limits.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { accountActor } from "./account.ts";
import { AccountState } from "./account-state.ts";
import { INVITATION_MS } from "./members.ts";

const START = 1_000_000;
const ACCOUNT = "a".repeat(32);
const owner = { userId: id(1), email: "one@example.com", roles: ["Super Administrator" as const] };
const opened = run("open", accountActor.initial, { name: "One", owner }).state;
/** A token with all permissions that belongs to no person. */
const all = { permissions: ALL_PERMISSIONS };
const secretHash = "5".repeat(64);

describe("members of an account", () => {
  it("invite() keeps an invitation for INVITATION_MS, and does not return its secret", () => {
    const invited = invitation(2, ["Member"]);
    const { state, reply, send } = run("invite", opened, invited);
    const shown = {
      ...{ id: id(2), email: "2@example.com", roles: ["Member"] },
      ...{ invitedAt: START, expiresAt: START + INVITATION_MS },
    };
    expect(reply).to.deep.equal(shown);
    expect(send).to.deep.equal([]);
    expect(run("invite", state, invited).changed).to.equal(false);
    const late = START + INVITATION_MS;
    expect(run("listMembers", state, {}, late - 1).reply.invitations).to.deep.equal([shown]);
    expect(run("listMembers", state, {}, late).reply.invitations).to.deep.equal([]);
    const proof = { id: id(2), secretHash };
    expect(run("getInvitation", state, proof, late - 1).reply).to.deep.equal({
      ...shown,
      accountName: "One",
    });
    expect(refusal(() => run("getInvitation", state, proof, late)).code).to.equal("not_found");
  });

  it("invite() of an invited address replaces the earlier invitation", () => {
    let { state } = run("invite", opened, invitation(2, ["Member"]));
    state = run("invite", state, {
      ...invitation(3, ["Administrator"]),
      email: "2@example.com",
    }).state;
    expect(state.invitations.map((entry) => entry.id)).to.deep.equal([id(3)]);
    const proof = { id: id(2), secretHash };
    expect(refusal(() => run("getInvitation", state, proof)).code).to.equal("not_found");
  });

  it("invite() refuses a member's address", () => {
    const invited = { ...invitation(2, ["Member"]), email: owner.email };
    expect(refusal(() => run("invite", opened, invited)).code).to.equal("conflict");
  });

  it("invite() accepts the last of MEMBERS_PER_ACCOUNT_MAX and refuses one more, until some expire", () => {
    let state = opened;
    for (let number = 2; number <= MEMBERS_PER_ACCOUNT_MAX; number++) {
      state = run("invite", state, invitation(number, ["Member"])).state;
    }
    const one = invitation(MEMBERS_PER_ACCOUNT_MAX + 1, ["Member"]);
    const refused = refusal(() => run("invite", state, one));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(MEMBERS_PER_ACCOUNT_MAX));
    state = run("invite", state, one, START + INVITATION_MS).state;
    expect(state.invitations).to.have.length(1);
  });

  it("nobody can grant, or change a member with, more than their token permits", () => {
    const by = { permissions: ["account.write" as const] };
    for (const call of [
      () => run("invite", opened, { ...invitation(2, ["Member"]), by }),
      () => run("setRoles", opened, { id: owner.userId, roles: ["Member"], by }),
      () => run("removeMember", opened, { id: owner.userId, by }),
    ]) {
      const refused = refusal(call);
      expect(refused.code).to.equal("forbidden");
      expect(refused.message).to.contain("Artifacts Read");
    }
  });

  it("an Administrator can change all but Super Administrators, and cannot grant that role", () => {
    let state = joined(joined(opened, 2, ["Administrator"]), 3, ["Member"]);
    const by = { ...all, userId: id(2) };
    for (const call of [
      () => run("invite", state, { ...invitation(4, ["Super Administrator"]), by }),
      () => run("setRoles", state, { id: id(2), roles: ["Super Administrator"], by }),
      () => run("setRoles", state, { id: id(1), roles: ["Member"], by }),
      () => run("removeMember", state, { id: id(1), by }),
    ]) {
      expect(refusal(call).message).to.contain("only a Super Administrator");
    }
    state = run("setRoles", state, {
      id: id(3),
      roles: ["OAuth Client Write", "Member"],
      by,
    }).state;
    expect(run("getMember", state, { userId: id(3) }).reply.roles).to.have.length(2);
    state = run("removeMember", state, { id: id(3), by }).state;
    expect(state.members).to.have.length(2);
    const gone = refusal(() =>
      run("invite", state, { ...invitation(5, ["Member"]), by: { ...all, userId: id(3) } }),
    );
    expect(gone.code).to.equal("forbidden");
  });

  it("an API token changes what its owner may change, and nothing once they are no member", () => {
    const owned = { id: id(20), name: "t", permissions: ALL_PERMISSIONS, lastFour: "abcd" };
    const two = joined(opened, 2, ["Administrator"]);
    const { state } = run("createToken", two, { ...owned, userId: id(2) });
    const by = { ...all, tokenId: id(20) };
    for (const call of [
      () => run("setRoles", state, { id: id(2), roles: ["Super Administrator"], by }),
      () => run("invite", state, { ...invitation(3, ["Super Administrator"]), by }),
      () => run("removeMember", state, { id: id(1), by }),
    ]) {
      expect(refusal(call).message).to.contain("only a Super Administrator");
    }
    expect(run("invite", state, { ...invitation(3, ["Member"]), by }).changed).to.equal(true);
    const left = run("removeMember", state, { id: id(2), by: all }).state;
    const refused = refusal(() => run("invite", left, { ...invitation(3, ["Member"]), by }));
    expect(refused.message).to.contain("the user is not a member");
    const deleted = run("removeToken", state, { id: id(20) }).state;
    const gone = refusal(() => run("invite", deleted, { ...invitation(3, ["Member"]), by }));
    expect(gone).to.include({ code: "forbidden" });
    expect(gone.message).to.contain("the token was deleted");
  });

  it("an invitation is void once its giver may not give its roles any more", () => {
    const two = joined(joined(opened, 2, ["Super Administrator"]), 3, ["Administrator"]);
    const by = { ...all, userId: id(2) };
    const own = run("createToken", two, {
      ...{ id: id(20), name: "t", permissions: ALL_PERMISSIONS, lastFour: "abcd", userId: id(2) },
    }).state;
    const ofToken = { ...invitation(6, ["Administrator"]), by: { ...all, tokenId: id(20) } };
    let state = run("invite", own, { ...invitation(4, ["Super Administrator"]), by }).state;
    state = run("invite", state, { ...invitation(5, ["Member"]), by }).state;
    state = run("invite", state, ofToken).state;
    state = run("invite", state, {
      ...invitation(7, ["Member"]),
      by: { ...all, userId: id(1) },
    }).state;
    const valid = (of: DeepReadonly<AccountState>) =>
      run("listMembers", of, {}).reply.invitations.map((one) => one.id);
    expect(valid(state)).to.deep.equal([id(4), id(5), id(6), id(7)]);
    const lowered = run("setRoles", state, { id: id(2), roles: ["Administrator"], by: all }).state;
    expect(valid(lowered)).to.deep.equal([id(5), id(6), id(7)]);
    // The person who changes the roles of an invitation gives it.
    const change = { id: id(5), roles: ["Administrator" as const], by: { ...all, userId: id(1) } };
    const given = run("setRoles", lowered, change).state;
    const left = run("removeMember", given, { id: id(2), by: all }).state;
    expect(valid(left)).to.deep.equal([id(5), id(7)]);
    const proof = { id: id(6), secretHash };
    expect(refusal(() => run("getInvitation", left, proof)).code).to.equal("not_found");
    const back = { ...proof, userId: id(8), email: "6@example.com" };
    expect(refusal(() => run("acceptInvitation", left, back)).code).to.equal("not_found");
    // Nor does it open the account when the giver is a member again.
    expect(valid(joined(left, 2, ["Super Administrator"]))).to.deep.equal([id(5), id(7)]);
  });

  it("a former administrator changes nothing, even with a request sent before they lost the role", () => {
    const state = joined(joined(opened, 2, ["OAuth Client Write"]), 3, ["Member"]);
    const by = { ...all, userId: id(2) };
    for (const call of [
      () => run("invite", state, { ...invitation(4, ["Member"]), by }),
      () => run("setRoles", state, { id: id(3), roles: ["OAuth Client Write"], by }),
      () => run("removeMember", state, { id: id(3), by }),
    ]) {
      expect(refusal(call).message).to.contain("no administrator");
    }
  });

  it("the last Super Administrator can neither leave nor lose the role", () => {
    const roles = ["Administrator" as const];
    const attempts = [
      () => run("removeMember", opened, { id: owner.userId, by: all }),
      () => run("setRoles", opened, { id: owner.userId, roles, by: { ...all, userId: id(1) } }),
    ];
    for (const attempt of attempts) {
      const refused = refusal(attempt);
      expect(refused.code).to.equal("conflict");
      expect(refused.message).to.contain("last Super Administrator");
    }
    const state = joined(opened, 2, ["Super Administrator"]);
    expect(run("removeMember", state, { id: id(1), by: all }).state.members).to.have.length(1);
    expect(run("setRoles", state, { id: id(1), roles, by: all }).changed).to.equal(true);
  });

  it("setRoles() and removeMember() notify the user and the subscribers of the account", () => {
    const state = joined(opened, 2, ["Member"]);
    const changed = run("setRoles", state, { id: id(2), roles: ["Administrator"], by: all });
    expect(changed.live).to.deep.equal({ change: "members" });
    expect(changed.send[0]).to.deep.include({
      ...{ kind: "user", key: "2@example.com", message: "joined" },
      input: { userId: id(2), accountId: ACCOUNT, roles: ["Administrator"] },
    });
    const removed = run("removeMember", changed.state, { id: id(2), by: all });
    expect(removed.live).to.deep.equal({ change: "members" });
    expect(removed.send[0]).to.deep.include({
      ...{ kind: "user", key: "2@example.com", message: "left" },
      input: { userId: id(2), accountId: ACCOUNT },
    });
    const again = refusal(() => run("removeMember", removed.state, { id: id(2), by: all }));
    expect(again.code).to.equal("not_found");
    const unknown = () => run("setRoles", removed.state, { id: id(2), roles: ["Member"], by: all });
    expect(refusal(unknown).code).to.equal("not_found");
  });

  it("setRoles() and removeMember() accept an invitation too", () => {
    let { state } = run("invite", opened, invitation(2, ["Member"]));
    const changed = run("setRoles", state, { id: id(2), roles: ["Administrator"], by: all });
    expect(changed.send).to.deep.equal([]);
    state = changed.state;
    expect(run("listMembers", state, {}).reply.invitations[0]?.roles).to.deep.equal([
      "Administrator",
    ]);
    state = run("removeMember", state, { id: id(2), by: all }).state;
    expect(state.invitations).to.deep.equal([]);
  });

  it("acceptInvitation() makes a member once, and repeating it changes nothing", () => {
    const { state } = run("invite", opened, invitation(2, ["Member"]));
    const accepting = { id: id(2), secretHash, userId: id(9), email: "2@example.com" };
    const accepted = run("acceptInvitation", state, accepting);
    expect(accepted.reply).to.deep.equal({ roles: ["Member"] });
    expect(accepted.live).to.deep.equal({ change: "members" });
    expect(accepted.send[0]?.input).to.deep.equal({
      ...{ userId: id(9), accountId: ACCOUNT, roles: ["Member"] },
    });
    expect(accepted.state.invitations).to.deep.equal([]);
    const member = { userId: id(9), email: "2@example.com", roles: ["Member"] };
    expect(accepted.state.members.at(-1)).to.deep.equal({ ...member, invitationId: id(2) });
    const repeated = run("acceptInvitation", accepted.state, accepting);
    expect(repeated.changed).to.equal(false);
    expect(repeated.reply).to.deep.equal({ roles: ["Member"] });
    const other = () => run("acceptInvitation", accepted.state, { ...accepting, userId: id(8) });
    expect(refusal(other).code).to.equal("not_found");
  });

  it("acceptInvitation() refuses another address, a wrong secret, and an expired invitation", () => {
    const { state } = run("invite", opened, invitation(2, ["Member"]));
    const accepting = { id: id(2), secretHash, userId: id(9), email: "2@example.com" };
    const refused = (change: Partial<typeof accepting>, at = START) =>
      refusal(() => run("acceptInvitation", state, { ...accepting, ...change }, at)).code;
    expect(refused({ email: "3@example.com" })).to.equal("forbidden");
    expect(refused({ secretHash: "6".repeat(64) })).to.equal("not_found");
    expect(refused({ id: id(3) })).to.equal("not_found");
    expect(refused({}, START + INVITATION_MS)).to.equal("not_found");
  });

  it("leave() needs no role, and refuses the last Super Administrator and a member who has left", () => {
    const one = joined(joined(opened, 2, ["OAuth Client Write"]), 3, ["Super Administrator"]);
    const { state, send } = run("leave", one, { userId: id(2) });
    expect(state.members.map(({ userId }) => userId)).to.deep.equal([id(1), id(3)]);
    expect(send[0]).to.deep.include({
      ...{ kind: "user", key: "2@example.com", message: "left" },
      input: { userId: id(2), accountId: ACCOUNT },
    });
    expect(refusal(() => run("leave", state, { userId: id(2) })).code).to.equal("not_found");
    const left = run("leave", state, { userId: id(1) }).state;
    const last = refusal(() => run("leave", left, { userId: id(3) }));
    expect([last.code, last.message]).to.deep.equal([
      "conflict",
      "Cannot leave account: you are its last Super Administrator; give this role to another member first",
    ]);
  });

  it("every call refuses an account that was not opened", () => {
    const { initial } = accountActor;
    for (const call of [
      () => run("getMember", initial, { userId: id(1) }),
      () => run("listMembers", initial, {}),
      () => run("invite", initial, invitation(2, ["Member"])),
      () => run("setRoles", initial, { id: id(1), roles: ["Member"], by: all }),
      () => run("removeMember", initial, { id: id(1), by: all }),
      () => run("leave", initial, { userId: id(1) }),
      () => run("getInvitation", initial, { id: id(1), secretHash }),
    ]) {
      expect(refusal(call).code).to.equal("not_found");
    }
  });

  it("members of the first release, who had one role, load", () => {
    const member = { userId: id(1), email: "one@example.com", role: "Super Administrator" };
    const old = { ...accountActor.initial, members: [member], invitations: undefined };
    const { members, invitations } = AccountState.parse(JSON.parse(JSON.stringify(old)));
    expect(members).to.deep.equal([owner]);
    expect(invitations).to.deep.equal([]);
    expect(AccountState.parse(JSON.parse(JSON.stringify(opened)))).to.deep.equal(opened);
  });
});

function id(number: number): string {
  return number.toString(16).padStart(32, "0");
}

type Roles = (typeof accountActor.initial)["members"][number]["roles"];

function invitation(number: number, roles: Roles) {
  return { id: id(number), email: `${number}@example.com`, roles, secretHash, by: all };
}

function joined(state: DeepReadonly<AccountState>, number: number, roles: Roles) {
  const { state: invited } = run("invite", state, invitation(number, roles));
  const email = `${number}@example.com`;
  const accepting = { id: id(number), secretHash, userId: id(number), email };
  return run("acceptInvitation", invited, accepting).state;
}

function run<N extends keyof typeof accountActor.contract.messages>(
  message: N,
  state: DeepReadonly<AccountState>,
  input: Parameters<(typeof accountActor.handlers)[N]>[1],
  now = START,
) {
  return runHandler(accountActor, message, state, input, { key: ACCOUNT, now });
}
