import { expect } from "chai";
import { refusal } from "../../scripts/testing/refusal.ts";
import { runHandler } from "../../scripts/testing/run-handler.ts";
import { userActor } from "./user.ts";
import { UserState } from "./user-state.ts";

const person = {
  id: "1".repeat(32),
  email: "one@example.com",
  passwordHash: "scrypt$1",
  accounts: [{ accountId: "a".repeat(32), roles: ["Super Administrator" as const] }],
};
const registered = runHandler(userActor, "register", userActor.initial, person).state;

describe("user", () => {
  it("register() makes the user once, and repeating it changes nothing", () => {
    expect(registered).to.deep.equal(person);
    const again = { ...person, passwordHash: "scrypt$2" };
    const repeated = runHandler(userActor, "register", registered, again);
    expect(repeated.changed).to.equal(false);
  });

  it("register() refuses an address that is taken", () => {
    const other = { ...person, id: "2".repeat(32) };
    const refused = refusal(() => runHandler(userActor, "register", registered, other));
    expect(refused.code).to.equal("conflict");
  });

  it("get() tells nothing of the password, and refuses an unknown user", () => {
    const { reply } = runHandler(userActor, "get", registered, {});
    expect(reply).to.deep.equal({ id: person.id, email: person.email, accounts: person.accounts });
    const refused = refusal(() =>
      runHandler(userActor, "get", userActor.initial, {}, { key: "two@example.com" }),
    );
    expect(refused.code).to.equal("not_found");
    expect(refused.message).to.contain("two@example.com");
  });

  it("joined() and left() change one account's membership, and the same twice changes nothing", () => {
    const accountId = "b".repeat(32);
    const joined = { userId: person.id, accountId, roles: ["Member" as const] };
    let { state } = runHandler(userActor, "joined", registered, joined);
    expect(state.accounts).to.deep.equal([...person.accounts, { accountId, roles: ["Member"] }]);
    state = runHandler(userActor, "joined", state, { ...joined, roles: ["Administrator"] }).state;
    expect(state.accounts[1]?.roles).to.deep.equal(["Administrator"]);
    const left = { userId: person.id, accountId };
    state = runHandler(userActor, "left", state, left).state;
    expect(state.accounts).to.deep.equal(person.accounts);
    expect(runHandler(userActor, "left", state, left).changed).to.equal(false);
  });

  it("joined() and left() of another user with this address change nothing", () => {
    const { accountId } = person.accounts[0] ?? { accountId: "" };
    const other = { userId: "2".repeat(32), accountId, roles: ["Member" as const] };
    for (const state of [userActor.initial, registered]) {
      expect(runHandler(userActor, "joined", state, other).changed).to.equal(false);
      expect(runHandler(userActor, "left", state, other).changed).to.equal(false);
    }
  });

  it("state of the first release, with one role an account, loads", () => {
    const accounts = [{ accountId: "a".repeat(32), role: "Super Administrator" }];
    const old = JSON.stringify({ ...person, accounts });
    expect(UserState.parse(JSON.parse(old))).to.deep.equal(person);
  });

  it("register() takes an address in lower case", () => {
    const { input } = userActor.contract.messages.register;
    expect(input.parse({ ...person, email: "One@Example.com" }).email).to.equal("one@example.com");
  });
});
