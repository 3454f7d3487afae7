import { createHash } from "node:crypto";
import { expect } from "chai";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { runHandler } from "../../scripts/testing/run-handler.ts";
import { apiTokenActor } from "./api-token.ts";
import { ApiTokenState } from "./api-token-state.ts";

const secretHash = createHash("sha256").update("secret").digest("hex");
const otherHash = createHash("sha256").update("other").digest("hex");
const permissions: ["apps.read"] = ["apps.read"];
const token = { accountId: "a".repeat(32), permissions, secretHash };
const issued = run("issue", apiTokenActor.initial, token).state;

describe("api-token", () => {
  it("verify() opens with the secret, and tells neither it nor its hash", () => {
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

  it("verify() opens from the time it is valid to the time it expires", () => {
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

  it("issue() repeated changes nothing, and refuses another secret", () => {
    expect(run("issue", issued, token).changed).to.equal(false);
    const refused = refusal(() => run("issue", issued, { ...token, secretHash: otherHash }));
    expect(refused.code).to.equal("conflict");
  });

  it("revoke() is for good, may be repeated, and may come first", () => {
    const { state } = run("revoke", apiTokenActor.initial, {});
    expect(state).to.deep.equal({ status: "revoked" });
    expect(run("revoke", state, {}).changed).to.equal(false);
    expect(refusal(() => run("issue", state, token)).code).to.equal("conflict");
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
  return runHandler(apiTokenActor, message, state, input, { now });
}
