import { expect } from "chai";
import { SESSIONS_PER_USER_MAX } from "../../../schemas/account/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
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

  it("get() returns nothing about the password, and refuses an unknown user", () => {
    const { reply } = runHandler(userActor, "get", registered, {});
    expect(reply).to.deep.equal({ id: person.id, email: person.email, accounts: person.accounts });
    const refused = refusal(() =>
      runHandler(userActor, "get", userActor.initial, {}, { key: "two@example.com" }),
    );
    expect(refused.code).to.equal("not_found");
    expect(refused.message).to.contain("two@example.com");
  });

  it("joined() and left() change one account's membership, and repeated change nothing", () => {
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

  it("state of the first release, with one role per account, loads", () => {
    const accounts = [{ accountId: "a".repeat(32), role: "Super Administrator" }];
    const old = JSON.stringify({ ...person, accounts });
    expect(UserState.parse(JSON.parse(old))).to.deep.equal(person);
  });

  it("register() stores an address in lower case", () => {
    const { input } = userActor.contract.messages.register;
    expect(input.parse({ ...person, email: "One@Example.com" }).email).to.equal("one@example.com");
  });
});

describe("user's password and sessions", () => {
  const id = (number: number) => number.toString(16).padStart(32, "0");
  const session = (number: number) => ({ userId: person.id, sessionId: id(number) });

  it("setPassword() replaces the current password once, and ends the other sessions", () => {
    let { state } = runHandler(userActor, "addSession", registered, session(1));
    state = runHandler(userActor, "addSession", state, session(2)).state;
    const change = { before: "scrypt$1", after: "argon2", ends: { keep: id(2) } };
    const changed = runHandler(userActor, "setPassword", state, change);
    expect(changed.reply.ended).to.deep.equal([id(1)]);
    expect(changed.send.map(({ key, message }) => [key, message])).to.deep.equal([
      [id(1), "signedOut"],
    ]);
    expect(changed.state.sessions).to.deep.equal([id(2)]);
    expect(runHandler(userActor, "setPassword", changed.state, change).reply.ended).to.deep.equal(
      [],
    );
    expect(runHandler(userActor, "setPassword", changed.state, change).state).to.deep.equal(
      changed.state,
    );
    const late = { ...change, after: "other" };
    const refused = refusal(() => runHandler(userActor, "setPassword", changed.state, late));
    expect(refused.code).to.equal("conflict");
  });

  it("listSessions() names them to their user alone, the latest last", () => {
    const ask = (userId: string, state = registered) =>
      runHandler(userActor, "listSessions", state, { userId }).reply.sessionIds;
    expect(ask(person.id)).to.deep.equal([]);
    let { state } = runHandler(userActor, "addSession", registered, session(1));
    state = runHandler(userActor, "addSession", state, session(2)).state;
    expect(ask(person.id, state)).to.deep.equal([session(1).sessionId, session(2).sessionId]);
    expect(refusal(() => ask("2".repeat(32), state)).code).to.equal("not_found");
  });

  it("addSession() refuses a sign-in checked before the password changed", () => {
    const change = { before: "scrypt$1", after: "argon2", ends: { keep: id(2) } };
    const before = runHandler(userActor, "addSession", registered, session(2)).state;
    const { state } = runHandler(userActor, "setPassword", before, change);
    expect(runHandler(userActor, "getPassword", state, {}).reply.passwordVersion).to.equal(1);
    for (const passwordVersion of [undefined, 0]) {
      const stale = { ...session(1), passwordVersion };
      const refused = refusal(() => runHandler(userActor, "addSession", state, stale));
      expect(refused.code).to.equal("unauthenticated");
    }
    // The session that changed the password stays open, although its older password version would now be refused.
    const kept = runHandler(userActor, "addSession", state, session(2));
    expect([kept.changed, kept.send]).to.deep.equal([false, []]);
    const fresh = { ...session(3), passwordVersion: 1 };
    const opened = runHandler(userActor, "addSession", state, fresh);
    expect([opened.state.sessions, opened.send]).to.deep.equal([[id(2), id(3)], []]);
  });

  it("setPassword() with a new hash of the same password ends no session", () => {
    const { state } = runHandler(userActor, "addSession", registered, session(1));
    const rehashed = { before: "scrypt$1", after: "argon2" };
    const { send, state: next } = runHandler(userActor, "setPassword", state, rehashed);
    expect([send.length, next.sessions]).to.deep.equal([0, [id(1)]]);
  });

  it("addSession() and sessionEnded() count each once; past the limit the oldest ends", () => {
    let state = registered;
    for (let i = 0; i < SESSIONS_PER_USER_MAX; i++) {
      state = runHandler(userActor, "addSession", state, session(i)).state;
    }
    expect(runHandler(userActor, "addSession", state, session(0)).changed).to.equal(false);
    const past = runHandler(userActor, "addSession", state, session(99));
    expect(past.send.map(({ key }) => key)).to.deep.equal([id(0)]);
    const ended = runHandler(userActor, "sessionEnded", past.state, session(99));
    expect(ended.state.sessions).to.have.length(SESSIONS_PER_USER_MAX - 1);
    expect(runHandler(userActor, "sessionEnded", ended.state, session(99)).changed).to.equal(false);
    const stranger = { userId: id(7), sessionId: id(1) };
    const refused = refusal(() => runHandler(userActor, "addSession", state, stranger));
    expect(refused.code).to.equal("unauthenticated");
    expect(runHandler(userActor, "sessionEnded", state, stranger).changed).to.equal(false);
  });
});
