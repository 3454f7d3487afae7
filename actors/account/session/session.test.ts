import { expect } from "chai";
import { SESSION_MS } from "../../../schemas/account/limits.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { sessionActor } from "./session.ts";
import type { SessionState } from "./session-state.ts";

const NOW = 1_000_000;
const secretHash = "1".repeat(64);
const person = { userId: "a".repeat(32), email: "one@example.com" };
const opened = run("open", sessionActor.initial, { secretHash, ...person }).state;

describe("session", () => {
  it("open() repeated changes nothing; another secret is a conflict", () => {
    expect(run("open", opened, { secretHash, ...person }).changed).to.equal(false);
    const other = { secretHash: "2".repeat(64), ...person };
    expect(refusal(() => run("open", opened, other)).code).to.equal("conflict");
  });

  it("get() opens with the secret until its time is over", () => {
    expect(run("get", opened, { secretHash }, NOW + SESSION_MS - 1).reply.user).to.deep.include(
      person,
    );
    for (const ask of [
      () => run("get", opened, { secretHash }, NOW + SESSION_MS),
      () => run("get", opened, { secretHash: "2".repeat(64) }),
      () => run("get", sessionActor.initial, { secretHash }),
    ]) {
      expect(refusal(ask).code).to.equal("unauthenticated");
    }
  });

  it("describe() shows a session to its person until its time is over", () => {
    const { userId } = person;
    const shown = run("describe", opened, { userId }, NOW + SESSION_MS - 1).reply;
    expect(shown).to.deep.equal({ authenticatedAt: NOW, expiresAt: NOW + SESSION_MS });
    for (const ask of [
      () => run("describe", opened, { userId }, NOW + SESSION_MS),
      () => run("describe", opened, { userId: "b".repeat(32) }),
      () => run("describe", sessionActor.initial, { userId }),
    ]) {
      expect(refusal(ask).code).to.equal("not_found");
    }
  });

  it("end(), signedOut() and expire() are for good, and repeated nothing", () => {
    for (const message of ["end", "signedOut"] as const) {
      const { forgotten, send } = run(message, opened, {});
      expect([forgotten, send[0]?.message]).to.deep.equal([true, "sessionEnded"]);
      expect(run(message, sessionActor.initial, {}).changed).to.equal(false);
    }
    expect(run("expire", opened, {}, NOW + SESSION_MS - 1).changed).to.equal(false);
    expect(run("expire", opened, {}, NOW + SESSION_MS).forgotten).to.equal(true);
    expect(run("expire", sessionActor.initial, {}).changed).to.equal(false);
  });

  it("awaitLogout() keeps a sign-out and takes it back, and keeps nothing of nobody", () => {
    const logout = { secret: "s" };
    const kept = run("awaitLogout", opened, { secretHash, logout }).state;
    expect(run("get", kept, { secretHash }).reply.logout).to.deep.equal(logout);
    const back = run("awaitLogout", kept, { secretHash }).state;
    expect(run("get", back, { secretHash }).reply.logout).to.equal(undefined);
    const nobody = run("awaitLogout", sessionActor.initial, { secretHash, logout });
    expect(nobody.changed).to.equal(false);
    // The first release kept it.
    const old = { status: "open" as const, secretHash, expiresAt: NOW + 1, logout };
    expect(run("get", old, { secretHash }).reply.user).to.equal(undefined);
    expect(run("end", old, {}).send).to.deep.equal([]);
  });
});

function run<N extends keyof typeof sessionActor.contract.messages>(
  message: N,
  state: DeepReadonly<SessionState>,
  input: Parameters<(typeof sessionActor.handlers)[N]>[1],
  now = NOW,
) {
  return runHandler(sessionActor, message, state, input, { now });
}
