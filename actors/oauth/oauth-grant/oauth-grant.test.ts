import { expect } from "chai";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { STATE_BYTES_MAX } from "../../../schemas/limits.ts";
import {
  ACCESS_TOKEN_MS,
  CODE_MS,
  GRANT_MS,
  REFRESH_GRACE_MS,
  REFRESH_TOKEN_MS,
} from "../../../schemas/oauth/limits.ts";
import type { GrantToken } from "../../../schemas/oauth/oauth-grant.ts";
import { TOKEN_RECORD_BYTES_MAX } from "../../../schemas/oauth/oauth-grant.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import {
  ACCESS_TOKENS_PER_GRANT_MAX,
  LATE_RETRIES_MAX,
  REFRESH_TOKENS_PER_GRANT_MAX,
  TOKEN_RECORDS_BYTES_MAX,
  USED_REFRESH_TOKENS_MAX,
} from "./grant-tokens.ts";
import { oauthGrantActor } from "./oauth-grant.ts";
import { OAuthGrantState } from "./oauth-grant-state.ts";

const NOW = 1_000_000;
const hash = (number: number) => number.toString(16).padStart(32, "0").padEnd(64, "0");
const token = (number: number, lifeMs: number, now = NOW): GrantToken => ({
  hash: hash(number),
  expiresAt: now + lifeMs,
  record: { scope: "apps.read" },
});
const grant = {
  clientId: "c".repeat(32),
  userId: "d".repeat(32),
  email: "one@example.com",
  scopes: ["apps.read" as const],
  rejectedScopes: [],
  accountIds: ["a".repeat(32)],
  expiresAt: NOW + GRANT_MS,
};
const code = token(1, CODE_MS);
const first = { access: token(2, ACCESS_TOKEN_MS), refresh: token(3, REFRESH_TOKEN_MS) };
const opened = run("open", oauthGrantActor.initial, { ...grant, code }).state;
const redeemed = run("redeem", opened, { codeHash: code.hash, ...first }).state;

describe("oauth-grant", () => {
  it("open() makes the grant with its code, notifies the grant list, and repeated changes nothing", () => {
    const { send, remind } = run("open", oauthGrantActor.initial, { ...grant, code });
    expect(send.map(({ message }) => message)).to.deep.equal(["grantOpened"]);
    expect(remind).to.deep.equal({ expire: code.expiresAt });
    expect(run("open", opened, { ...grant, code }).changed).to.equal(false);
    const other = { ...grant, code: token(9, CODE_MS) };
    expect(refusal(() => run("open", opened, other)).code).to.equal("conflict");
  });

  it("redeem() issues tokens once; a second use revokes the grant", () => {
    expect(find(redeemed, "access", 2).token.used).to.equal(false);
    const again = run("redeem", redeemed, { codeHash: code.hash, access: token(4, 1) });
    expect([again.reply.outcome, again.forgotten, again.live]).to.deep.equal([
      "reused",
      true,
      { change: "ended" },
    ]);
    expect(again.send.map(({ message }) => message)).to.deep.equal(["grantEnded"]);
  });

  it("redeem() is refused for another code, and from the moment it expires", () => {
    const at = (now: number) => () =>
      run("redeem", opened, { codeHash: code.hash, ...first }, now).reply;
    expect(at(NOW + CODE_MS - 1)().outcome).to.equal("issued");
    expect(refusal(at(NOW + CODE_MS)).code).to.equal("not_found");
    const wrong = { codeHash: hash(8), ...first };
    expect(refusal(() => run("redeem", opened, wrong)).code).to.equal("not_found");
  });

  it("find() always shows a redeemed code as used", () => {
    expect(find(opened, "code", 1).token.used).to.equal(false);
    expect(find(redeemed, "code", 1, NOW + CODE_MS).token.used).to.equal(true);
  });

  it("refresh() serves a retry within the grace period, and a later reuse revokes the grant", () => {
    const next = (number: number) => ({
      refreshHash: hash(3),
      access: token(number, ACCESS_TOKEN_MS),
      refresh: token(number + 1, REFRESH_TOKEN_MS),
    });
    const { state } = run("refresh", redeemed, next(10));
    const late = NOW + REFRESH_GRACE_MS;
    expect(find(state, "refresh", 3, late - 1).token.used).to.equal(false);
    const retried = run("refresh", state, next(20), late - 1);
    expect(retried.reply.outcome).to.equal("issued");
    expect(find(retried.state, "refresh", 11).token.used).to.equal(false);
    const used = run("refresh", state, { ...next(30), refreshHash: hash(11) }, late).state;
    expect(find(used, "refresh", 3, late).token.used).to.equal(true);
    const reused = run("refresh", used, next(20), late);
    expect([reused.reply.outcome, reused.forgotten]).to.deep.equal(["reused", true]);
    // The retry did not extend the grace period.
    const both = run("refresh", retried.state, { ...next(30), refreshHash: hash(21) }, late).state;
    expect(run("refresh", both, next(40), late).forgotten).to.equal(true);
  });

  describe("refresh() with a token whose response was lost", () => {
    const late = NOW + 2 * REFRESH_GRACE_MS;
    /** Refreshes; the new access token is `number`, the new refresh token `number + 1`. */
    const refresh = (state: State, used: number, number: number, now = NOW) => {
      const access = token(number, ACCESS_TOKEN_MS, now);
      const next = token(number + 1, REFRESH_TOKEN_MS, now);
      return run("refresh", state, { refreshHash: hash(used), access, refresh: next }, now);
    };
    const lost = refresh(redeemed, 3, 10).state;

    it("issues tokens after the grace period, and revokes those of the lost response", () => {
      expect(find(lost, "refresh", 3, late).token.used).to.equal(false);
      const { state, reply, live } = refresh(lost, 3, 20, late);
      expect([reply.outcome, live]).to.deep.equal(["issued", { change: "revoked" }]);
      expect(refusal(() => find(state, "access", 10, late)).code).to.equal("not_found");
      expect(find(state, "access", 20, late).token.used).to.equal(false);
      const next = refresh(state, 21, 30, late).state;
      expect(find(next, "refresh", 31, late).token.used).to.equal(false);
      expect(find(next, "refresh", 3, late).token.used).to.equal(true);
    });

    it("ends the grant if a refresh token of the lost response appears afterwards", () => {
      const { state } = refresh(lost, 3, 20, late);
      expect(find(state, "refresh", 11, late).token.used).to.equal(true);
      const { reply, forgotten } = refresh(state, 11, 30, late);
      expect([reply.outcome, forgotten]).to.deep.equal(["reused", true]);
    });

    it("ends the grant if one of the new tokens was used before", () => {
      const refreshed = refresh(lost, 11, 30).state;
      const opened = run("find", lost, { kind: "access", hash: hash(10) }).state;
      for (const state of [refreshed, opened]) {
        expect(find(state, "refresh", 3, late).token.used).to.equal(true);
        const { reply, forgotten } = refresh(state, 3, 40, late);
        expect([reply.outcome, forgotten]).to.deep.equal(["reused", true]);
      }
      // Only the first use of an access token is stored.
      const again = run("find", opened, { kind: "access", hash: hash(10) });
      expect(again.changed).to.equal(false);
    });

    it("issues tokens LATE_RETRIES_MAX times, and then ends the grant", () => {
      let state: State = lost;
      for (let i = 0; i < LATE_RETRIES_MAX; i++) {
        const retried = refresh(state, 3, 100 + 2 * i, late);
        expect(retried.reply.outcome).to.equal("issued");
        state = retried.state;
      }
      expect(state.status === "open" && state.refresh.length).to.equal(1);
      expect(refresh(state, 3, 200, late).forgotten).to.equal(true);
    });

    it("keeps the used token of one process while other processes refresh", () => {
      // Two processes have used the same token, and each then its own. The second does not get the response.
      const both = refresh(lost, 3, 20).state;
      const first = refresh(both, 11, 30).state;
      const second = refresh(first, 21, 40).state;
      const later = refresh(second, 31, 50, late).state;
      expect(refresh(later, 21, 60, late).reply.outcome).to.equal("issued");
    });

    it("ends the grant for a token whose successors an earlier version did not name", () => {
      if (lost.status !== "open") throw new Error("ended");
      const refreshed = lost.refresh.map(({ from: _, ...old }) => old);
      const access = lost.access.map(({ from: _, ...old }) => old);
      const old = OAuthGrantState.parse({ ...lost, refresh: refreshed, access });
      expect(refresh(old, 3, 20, late).forgotten).to.equal(true);
      const { state } = refresh(old, 3, 20, NOW + REFRESH_GRACE_MS - 1);
      expect(refresh(state, 3, 30, late).forgotten).to.equal(true);
    });
  });

  it("refresh() recognizes a used token after many others up to the limit, and rejects forged ones", () => {
    let state = redeemed;
    let now = NOW;
    for (let i = 0; i <= USED_REFRESH_TOKENS_MAX; i++) {
      now += REFRESH_GRACE_MS;
      const refreshHash = i === 0 ? hash(3) : hash(1_000 + i - 1);
      const tokens = {
        access: token(10_000 + i, ACCESS_TOKEN_MS, now),
        refresh: token(1_000 + i, REFRESH_TOKEN_MS, now),
      };
      state = run("refresh", state, { refreshHash, ...tokens }, now).state;
    }
    expect(state.status === "open" && state.usedRefresh.length).to.equal(USED_REFRESH_TOKENS_MAX);
    expect(state.status === "open" && state.access.length).to.be.at.most(
      ACCESS_TOKENS_PER_GRANT_MAX,
    );
    expect(find(state, "refresh", 1_000, now).token.used).to.equal(true);
    expect(refusal(() => find(state, "refresh", 77, now)).code).to.equal("not_found");
  });

  it("refresh() in a burst keeps the newest live tokens up to the limits", () => {
    let state = redeemed;
    for (let i = 0; i < ACCESS_TOKENS_PER_GRANT_MAX + 5; i++) {
      const tokens = { access: token(100 + i, 1e6), refresh: token(500 + i, 1e6) };
      const refreshHash = i === 0 ? hash(3) : hash(500 + i - 1);
      state = run("refresh", state, { refreshHash, ...tokens }).state;
    }
    if (state.status !== "open") throw new Error("ended");
    expect(state.access).to.have.length(ACCESS_TOKENS_PER_GRANT_MAX);
    expect(state.refresh).to.have.length(REFRESH_TOKENS_PER_GRANT_MAX);
    expect(find(state, "access", 100 + ACCESS_TOKENS_PER_GRANT_MAX + 4).token.used).to.equal(false);
  });

  /**
   * Retries the refresh with the same used token `times` times. Each retry gets its own next token; `first` is the
   * number of the first of them.
   */
  function retried(state: State, used: number, asked: { first: number; times: number }) {
    let next = state;
    for (let i = 0; i < asked.times; i++) {
      const access = token(10_000 + asked.first + i, ACCESS_TOKEN_MS);
      const refresh = token(asked.first + i, REFRESH_TOKEN_MS);
      const { reply, state } = run("refresh", next, { refreshHash: hash(used), access, refresh });
      expect(reply.outcome).to.equal("issued");
      next = state;
    }
    return next;
  }

  it("refresh() serves 64 concurrent calls with one token, and then each with its own token", () => {
    let state = retried(redeemed, 3, { first: 100, times: 64 });
    for (let i = 0; i < 64; i++) state = retried(state, 100 + i, { first: 200 + i, times: 1 });
    for (let i = 0; i < 64; i++) {
      expect(find(state, "refresh", 100 + i).token.used).to.equal(false);
      expect(find(state, "refresh", 200 + i).token.used).to.equal(false);
      expect(find(state, "access", 10_100 + i).token.used).to.equal(false);
      expect(find(state, "access", 10_200 + i).token.used).to.equal(false);
    }
  });

  it("refresh() revokes nothing within the grace period: the oldest unused token expires without counting as reuse", () => {
    const times = REFRESH_TOKENS_PER_GRANT_MAX - 1;
    const full = retried(redeemed, 3, { first: 1_000, times });
    expect(find(full, "refresh", 1_000).token.used).to.equal(false);
    const state = retried(full, 3, { first: 1_000 + times, times: 1 });
    const oldest = { refreshHash: hash(1_000), ...first };
    expect(refusal(() => run("refresh", state, oldest)).code).to.equal("not_found");
    for (const number of [3, 1_001, 1_000 + times]) {
      expect(find(state, "refresh", number).token.used).to.equal(false);
    }
    const used = retried(state, 1_001, { first: 5_000, times: 1 });
    const late = run("refresh", used, { ...oldest, refreshHash: hash(3) }, NOW + REFRESH_GRACE_MS);
    expect([late.reply.outcome, late.forgotten]).to.deep.equal(["reused", true]);
  });

  it("refresh() keeps the newest records within TOKEN_RECORDS_BYTES_MAX, and the state fits its size limit", () => {
    const record = { x: "x".repeat(TOKEN_RECORD_BYTES_MAX - '{"x":""}'.length) };
    let state = redeemed;
    for (let i = 0; i < 80; i++) {
      const tokens = {
        access: { ...token(10_000 + i, ACCESS_TOKEN_MS), record },
        refresh: { ...token(1_000 + i, REFRESH_TOKEN_MS), record },
      };
      state = run("refresh", state, { refreshHash: hash(3), ...tokens }).state;
    }
    if (state.status !== "open") throw new Error("ended");
    const most = Math.floor(TOKEN_RECORDS_BYTES_MAX / TOKEN_RECORD_BYTES_MAX);
    // The refresh token that can still be retried is stored too, but its record is small.
    expect([state.access.length, state.refresh.length]).to.deep.equal([most, most + 1]);
    expect(find(state, "refresh", 1_079).token.used).to.equal(false);
    expect(find(state, "refresh", 3).token.used).to.equal(false);
    expect(Buffer.byteLength(JSON.stringify(state))).to.be.below(STATE_BYTES_MAX - 100_000);
  });

  it("find() refuses a token after its own expiry and the grant's", () => {
    const late = () => find(redeemed, "access", 2, NOW + ACCESS_TOKEN_MS);
    expect(find(redeemed, "access", 2, NOW + ACCESS_TOKEN_MS - 1).grant.userId).to.equal(
      grant.userId,
    );
    expect(refusal(late).code).to.equal("not_found");
    const over = refusal(() => run("get", redeemed, {}, NOW + GRANT_MS));
    expect(over.code).to.equal("not_found");
  });

  it("revokeAccess() revokes only that token; revoke() and consentWithdrawn() all of them, and repeated change nothing", () => {
    const { state, live } = run("revokeAccess", redeemed, { hash: hash(2) });
    expect(live).to.deep.equal({ change: "revoked" });
    expect(refusal(() => find(state, "access", 2)).code).to.equal("not_found");
    expect(find(state, "refresh", 3).token.used).to.equal(false);
    expect(run("revokeAccess", state, { hash: hash(2) }).changed).to.equal(false);
    for (const message of ["revoke", "consentWithdrawn"] as const) {
      expect(run(message, redeemed, {}).forgotten).to.equal(true);
      expect(run(message, oauthGrantActor.initial, {}).changed).to.equal(false);
    }
  });

  it("tellAgain() repeats the notifications of an open and a revoked grant, and changes neither", () => {
    const open = run("tellAgain", redeemed, {});
    expect([open.live, open.changed]).to.deep.equal([{ change: "revoked" }, false]);
    const gone = run("tellAgain", oauthGrantActor.initial, {});
    expect([gone.live, gone.changed]).to.deep.equal([{ change: "ended" }, false]);
  });

  it("expire() sets another reminder while a token is valid, and deletes the state otherwise", () => {
    const early = run("expire", redeemed, {}, NOW + CODE_MS);
    expect(early.remind).to.deep.equal({ expire: NOW + REFRESH_TOKEN_MS });
    expect(run("expire", redeemed, {}, NOW + REFRESH_TOKEN_MS).forgotten).to.equal(true);
    expect(run("expire", oauthGrantActor.initial, {}).changed).to.equal(false);
  });

  it("a record is accepted up to its size limit", () => {
    const record = (bytes: number) => ({ x: "x".repeat(bytes - '{"x":""}'.length) });
    const { input } = oauthGrantActor.contract.messages.redeem;
    const asked = (bytes: number) =>
      input.safeParse({ codeHash: hash(1), access: { ...code, record: record(bytes) } }).success;
    expect([asked(TOKEN_RECORD_BYTES_MAX), asked(TOKEN_RECORD_BYTES_MAX + 1)]).to.deep.equal([
      true,
      false,
    ]);
  });
});

type State = DeepReadonly<OAuthGrantState>;

function find(state: State, kind: "code" | "access" | "refresh", number: number, now = NOW) {
  return run("find", state, { kind, hash: hash(number) }, now).reply;
}

function run<N extends keyof typeof oauthGrantActor.contract.messages>(
  message: N,
  state: State,
  input: Parameters<(typeof oauthGrantActor.handlers)[N]>[1],
  now = NOW,
) {
  return runHandler(oauthGrantActor, message, state, input, { now });
}
