import { createHash } from "node:crypto";
import { expect } from "chai";
import { TOKEN_USED_EVERY_MS } from "../../../schemas/account/limits.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { apiTokenActor, TOKEN_REVOKED_KEPT_MS } from "./api-token.ts";
import { ApiTokenState } from "./api-token-state.ts";

const secretHash = createHash("sha256").update("secret").digest("hex");
const otherHash = createHash("sha256").update("other").digest("hex");
const KEY = "b".repeat(32);
const permissions: ["apps.read"] = ["apps.read"];
const token = { accountId: "a".repeat(32), permissions, secretHash };
const issued = run("issue", apiTokenActor.initial, token).state;

describe("api-token", () => {
  it("verify() accepts the secret, and returns neither it nor its hash", () => {
    const { reply, changed } = run("verify", issued, { secretHash });
    expect(reply).to.deep.equal({ accountId: token.accountId, permissions });
    expect(changed).to.equal(false);
  });

  it("verify() refuses another secret, an unknown token and a revoked one alike", () => {
    const revoked = run("revoke", issued, {}).state;
    const refusals = [
      refusal(() => run("verify", issued, { secretHash: otherHash })),
      refusal(() => run("verify", apiTokenActor.initial, { secretHash })),
      refusal(() => run("verify", revoked, { secretHash })),
    ];
    expect(new Set(refusals.map(({ message }) => message)).size).to.equal(1);
    for (const { code } of refusals) expect(code).to.equal("unauthenticated");
  });

  it("verify() accepts a token from its start time until it expires", () => {
    const { state } = run("issue", apiTokenActor.initial, {
      ...token,
      notBeforeAt: 1_000,
      expiresAt: 2_000,
    });
    const verifyAt = (now: number) => () => run("verify", state, { secretHash }, now);
    expect(refusal(verifyAt(999)).code).to.equal("unauthenticated");
    expect(verifyAt(1_000)().reply.expiresAt).to.equal(2_000);
    expect(verifyAt(1_999)().reply.notBeforeAt).to.equal(1_000);
    expect(refusal(verifyAt(2_000)).code).to.equal("unauthenticated");
  });

  it("used() records the time to within TOKEN_USED_EVERY_MS, and reports it to the account", () => {
    const first = run("used", issued, {}, 5_000);
    expect(first.send).to.deep.equal([
      {
        ...{ to: "actor", kind: "account", key: token.accountId, message: "tokenUsed" },
        input: { id: KEY, at: 5_000 },
      },
    ]);
    expect(run("verify", first.state, { secretHash }, 6_000).reply.lastUsedAt).to.equal(5_000);
    const soon = run("used", first.state, {}, 5_000 + TOKEN_USED_EVERY_MS - 1);
    expect(soon.changed).to.equal(false);
    expect(soon.send).to.deep.equal([]);
    const later = run("used", first.state, {}, 5_000 + TOKEN_USED_EVERY_MS);
    expect(later.state).to.include({ lastUsedAt: 5_000 + TOKEN_USED_EVERY_MS });
    expect(later.send).to.have.length(1);
    const changed = run("change", later.state, { secretHash: otherHash }).state;
    expect(changed).to.include({ lastUsedAt: 5_000 + TOKEN_USED_EVERY_MS });
  });

  it("used() changes nothing of a token that is unknown or revoked", () => {
    const revoked = run("revoke", issued, {}).state;
    for (const state of [apiTokenActor.initial, revoked]) {
      const { changed, send } = run("used", state, {}, 5_000);
      expect({ changed, send }).to.deep.equal({ changed: false, send: [] });
    }
  });

  it("issue() repeated changes nothing, and refuses another secret", () => {
    expect(run("issue", issued, token).changed).to.equal(false);
    const refused = refusal(() => run("issue", issued, { ...token, secretHash: otherHash }));
    expect(refused.code).to.equal("conflict");
  });

  it("change() replaces the permissions, and keeps the secret", () => {
    const timed = run("issue", apiTokenActor.initial, { ...token, expiresAt: 2_000 }).state;
    const opens = { permissions: ["apps.write" as const], notBeforeAt: 1_000 };
    const { state } = run("change", timed, { opens });
    expect(run("verify", state, { secretHash }, 5_000).reply).to.deep.equal({
      accountId: token.accountId,
      ...opens,
    });
    expect(run("change", state, { opens }).state).to.deep.equal({ ...state, changes: 2 });
  });

  it("change() counts the changes of the permissions, not those of the secret", () => {
    const first = run("change", issued, { opens: { permissions } });
    expect(first.reply).to.deep.equal({ changes: 1 });
    const rolled = run("change", first.state, { secretHash: otherHash });
    expect(rolled.reply).to.deep.equal({ changes: 1 });
    expect(run("change", rolled.state, { opens: { permissions } }).reply.changes).to.equal(2);
  });

  it("change() disables the token, and enables it again", () => {
    const disabled = run("change", issued, { opens: { permissions, isDisabled: true } }).state;
    expect(refusal(() => run("verify", disabled, { secretHash })).code).to.equal("unauthenticated");
    const enabled = run("change", disabled, { opens: { permissions } }).state;
    expect(run("verify", enabled, { secretHash }).reply.permissions).to.deep.equal(permissions);
  });

  it("change() replaces the secret, and keeps the permissions", () => {
    const timed = run("issue", apiTokenActor.initial, { ...token, expiresAt: 2_000 }).state;
    const { state } = run("change", timed, { secretHash: otherHash });
    expect(refusal(() => run("verify", state, { secretHash })).code).to.equal("unauthenticated");
    expect(run("verify", state, { secretHash: otherHash }).reply.expiresAt).to.equal(2_000);
    const disabled = run("change", issued, { opens: { permissions, isDisabled: true } }).state;
    const rolled = run("change", disabled, { secretHash: otherHash }).state;
    const verify = () => run("verify", rolled, { secretHash: otherHash });
    expect(refusal(verify).code).to.equal("unauthenticated");
  });

  it("change() refuses a token that is unknown or revoked", () => {
    const revoked = run("revoke", issued, {}).state;
    for (const state of [apiTokenActor.initial, revoked]) {
      const change = () => run("change", state, { secretHash: otherHash });
      expect(refusal(change).code).to.equal("not_found");
    }
  });

  it("revoke() is permanent, may be repeated, and may arrive before issue()", () => {
    const { state } = run("revoke", apiTokenActor.initial, {});
    expect(state).to.deep.equal({ status: "revoked" });
    expect(run("revoke", state, {}).changed).to.equal(false);
    expect(refusal(() => run("issue", state, token)).code).to.equal("conflict");
  });

  it("revokeExpired() revokes an expired token, and refuses one that has not expired", () => {
    const until = (expiresAt: number) =>
      run("issue", apiTokenActor.initial, { ...token, expiresAt }).state;
    const expired = run("revokeExpired", until(2_000), {}, 2_000);
    expect(expired.state).to.deep.equal({ status: "revoked" });
    expect(expired.remind).to.deep.equal({ forget: 2_000 + TOKEN_REVOKED_KEPT_MS });
    expect(run("revokeExpired", expired.state, {}, 3_000).changed).to.equal(false);
    for (const state of [until(2_000), issued]) {
      const refused = refusal(() => run("revokeExpired", state, {}, 1_999));
      expect(refused.code).to.equal("conflict");
    }
    const prolonged = run("change", until(2_000), { opens: { permissions, expiresAt: 5_000 } });
    const refused = refusal(() => run("revokeExpired", prolonged.state, {}, 4_999));
    expect(refused.code).to.equal("conflict");
  });

  it("revokeExpired() of a token that was never issued prevents that it is issued", () => {
    const { state } = run("revokeExpired", apiTokenActor.initial, {});
    expect(refusal(() => run("issue", state, token)).code).to.equal("conflict");
  });

  it("revoke() keeps the state for TOKEN_REVOKED_KEPT_MS, and then forget() deletes it", () => {
    for (const state of [issued, apiTokenActor.initial]) {
      const revoked = run("revoke", state, {}, 5_000);
      expect(revoked.remind).to.deep.equal({ forget: 5_000 + TOKEN_REVOKED_KEPT_MS });
      expect(run("revoke", revoked.state, {}, 6_000).remind).to.deep.equal({});
      const forgotten = run("forget", revoked.state, {});
      expect(forgotten.forgotten).to.equal(true);
      const verify = () => run("verify", forgotten.state, { secretHash });
      expect(refusal(verify).code).to.equal("unauthenticated");
    }
  });

  it("forget() changes nothing of a token that is not revoked", () => {
    for (const state of [issued, apiTokenActor.initial]) {
      expect(run("forget", state, {}).changed).to.equal(false);
    }
  });

  it("state of the first release loads", () => {
    for (const bytes of [
      `{"status":"unknown"}`,
      `{"status":"issued","accountId":"${"a".repeat(32)}","permissions":["apps.read"],"secretHash":"${secretHash}"}`,
      `{"status":"revoked"}`,
    ]) {
      expect(ApiTokenState.parse(JSON.parse(bytes))).to.deep.equal(JSON.parse(bytes));
    }
  });
});

function run<N extends keyof typeof apiTokenActor.contract.messages>(
  message: N,
  state: DeepReadonly<ApiTokenState>,
  input: Parameters<(typeof apiTokenActor.handlers)[N]>[1],
  now = 0,
) {
  return runHandler(apiTokenActor, message, state, input, { key: KEY, now });
}
