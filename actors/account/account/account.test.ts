import { expect } from "chai";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { TOKENS_PER_ACCOUNT_MAX } from "../../../schemas/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { accountActor } from "./account.ts";
import { AccountState } from "./account-state.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
const owner = {
  userId: "1".repeat(32),
  email: "one@example.com",
  roles: ["Super Administrator" as const],
};
const opened = run("open", accountActor.initial, { name: "One", owner }).state;

describe("account", () => {
  it("open() makes the account once, and repeating it changes nothing", () => {
    expect(opened).to.include({ name: "One", createdAt: NOON });
    expect(opened.members).to.deep.equal([owner]);
    const repeated = run("open", opened, { name: "Other", owner });
    expect(repeated.changed).to.equal(false);
  });

  it("open() refuses another owner", () => {
    const other = { ...owner, userId: "2".repeat(32) };
    expect(refusal(() => run("open", opened, { name: "One", owner: other })).code).to.equal(
      "conflict",
    );
  });

  it("every call refuses an account that was not opened", () => {
    const { initial } = accountActor;
    for (const call of [
      () => run("get", initial, {}),
      () => run("createToken", initial, token(1)),
      () => run("listTokens", initial, {}),
      () => run("getToken", initial, { id: token(1).id }),
      () => run("removeToken", initial, { id: token(1).id }),
    ]) {
      expect(refusal(call).code).to.equal("not_found");
    }
  });

  it("get() returns name, time and members, and no token", () => {
    const { reply } = run("get", run("createToken", opened, token(1)).state, {});
    expect(reply).to.deep.equal({ name: "One", createdAt: NOON, members: [owner] });
  });

  it("createToken() adds an entry once", () => {
    const { state, reply } = run("createToken", opened, token(1));
    expect(reply).to.deep.equal({ ...token(1), createdAt: NOON });
    expect(run("createToken", state, token(1)).changed).to.equal(false);
    expect(run("getToken", state, { id: token(1).id }).reply).to.deep.equal(reply);
  });

  it("createToken() accepts the last token of the limit and refuses one more", () => {
    let state = opened;
    for (let i = 1; i <= TOKENS_PER_ACCOUNT_MAX; i++) {
      state = run("createToken", state, token(i)).state;
    }
    expect(run("listTokens", state, {}).reply.tokens).to.have.length(TOKENS_PER_ACCOUNT_MAX);
    const refused = refusal(() => run("createToken", state, token(TOKENS_PER_ACCOUNT_MAX + 1)));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(TOKENS_PER_ACCOUNT_MAX));
  });

  it("removeToken() removes only that token, and answers unknown the second time", () => {
    let { state } = run("createToken", opened, token(1));
    state = run("createToken", state, token(2)).state;
    state = run("removeToken", state, { id: token(1).id }).state;
    expect(run("listTokens", state, {}).reply.tokens.map(({ id }) => id)).to.deep.equal([
      token(2).id,
    ]);
    const refused = refusal(() => run("removeToken", state, { id: token(1).id }));
    expect(refused.code).to.equal("not_found");
  });

  it("tokenUsed() sets the last use, and ignores older reports and tokens that are gone", () => {
    const made = run("createToken", opened, token(1)).state;
    const { id } = token(1);
    const used = run("tokenUsed", made, { id, at: NOON }).state;
    expect(run("getToken", used, { id }).reply.lastUsedAt).to.equal(NOON);
    expect(run("tokenUsed", used, { id, at: NOON }).changed).to.equal(false);
    expect(run("tokenUsed", used, { id, at: NOON - 1 }).changed).to.equal(false);
    const renamed = run("changeToken", used, { ...token(1), name: "other" });
    expect(renamed.reply).to.include({ name: "other", lastUsedAt: NOON });
    const removed = run("removeToken", used, { id }).state;
    expect(run("tokenUsed", removed, { id, at: NOON + 1 }).changed).to.equal(false);
  });

  it("changeToken() ignores a change that a later one has overtaken", () => {
    const made = run("createToken", opened, token(1)).state;
    const later = { ...token(1), name: "later", changes: 2 };
    const { state } = run("changeToken", made, later);
    const overtaken = run("changeToken", state, { ...token(1), isDisabled: true, changes: 1 });
    expect(overtaken.changed).to.equal(false);
    expect(overtaken.reply).to.include({ name: "later" });
    expect(run("changeToken", state, { ...later, name: "same" }).reply.name).to.equal("same");
    // A roll has changed the last characters since the gateway read them.
    const rolled = run("changeToken", made, { ...token(1), lastFour: "wxyz", only: "lastFour" });
    expect(run("changeToken", rolled.state, later).reply.lastFour).to.equal("wxyz");
    // Gateways of an earlier version do not count the changes.
    expect(run("changeToken", state, token(1)).reply.name).to.equal("t");
  });

  it("changeToken() of one field keeps the others as they are now", () => {
    const made = run("createToken", opened, token(1)).state;
    const { state } = run("changeToken", made, { ...token(1), isDisabled: true, changes: 1 });
    const rolled = { ...token(1), lastFour: "wxyz", only: "lastFour" as const };
    const { reply } = run("changeToken", state, rolled);
    expect(reply).to.include({ lastFour: "wxyz", isDisabled: true, changes: 1 });
  });

  it("state of the first release loads", () => {
    const bytes = `{"createdAt":1,"name":"One","members":[{"userId":"${"1".repeat(32)}",
      "email":"one@example.com","role":"Super Administrator"}],"tokens":[{"id":"${"2".repeat(32)}",
      "name":"t","permissions":["account.read"],"lastFour":"abcd","createdAt":1}],
      "usage":[{"date":"2026-11-20","ms":5,"tasks":1}],"countedTasks":["a"]}`;
    const state = AccountState.parse(JSON.parse(bytes));
    expect(state.tokens[0]?.name).to.equal("t");
    // The browser time is no part of an account any more.
    expect(state).to.have.all.keys("createdAt", "name", "members", "invitations", "tokens");
  });
});

function token(number: number) {
  const permissions: ["account.read"] = ["account.read"];
  return { id: number.toString(16).padStart(32, "0"), name: "t", permissions, lastFour: "abcd" };
}

function run<N extends keyof typeof accountActor.contract.messages>(
  message: N,
  state: DeepReadonly<AccountState>,
  input: Parameters<(typeof accountActor.handlers)[N]>[1],
  now = NOON,
) {
  return runHandler(accountActor, message, state, input, { now });
}
