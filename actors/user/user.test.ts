import { expect } from "chai";
import { refusal } from "../../scripts/testing/refusal.ts";
import { runHandler } from "../../scripts/testing/run-handler.ts";
import { userActor } from "./user.ts";

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

  it("register() takes an address in lower case", () => {
    const { input } = userActor.contract.messages.register;
    expect(input.parse({ ...person, email: "One@Example.com" }).email).to.equal("one@example.com");
  });
});
