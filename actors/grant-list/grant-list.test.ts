import { expect } from "chai";
import type { DeepReadonly } from "../../schemas/contract.ts";
import { CLIENTS_PER_USER_MAX, GRANTS_PER_CLIENT_MAX } from "../../schemas/oauth-server-limits.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { runHandler } from "../../scripts/testing/run-handler.ts";
import { grantListActor } from "./grant-list.ts";
import type { GrantListState } from "./grant-list-state.ts";

const id = (number: number) => number.toString(16).padStart(32, "0");
const consent = {
  clientId: id(1),
  scopes: ["apps.read" as const],
  rejectedScopes: ["apps.write" as const],
  accountIds: [id(9)],
};
const allowed = run("consent", grantListActor.initial, consent).state;

describe("grant-list", () => {
  it("consent() adds to what was decided for the same accounts, the latest word counting", () => {
    const more = { ...consent, scopes: ["apps.write" as const], rejectedScopes: [] };
    const { state } = run("consent", allowed, more);
    const { reply } = run("getConsent", state, { clientId: id(1) });
    expect(reply.consent?.scopes).to.deep.equal(["apps.read", "apps.write"]);
    expect(reply.consent?.rejectedScopes).to.deep.equal([]);
  });

  it("consent() for other accounts takes the place of what was decided for some", () => {
    const other = { ...consent, scopes: ["account.read" as const], accountIds: [id(8)] };
    const { reply } = run("getConsent", run("consent", allowed, other).state, { clientId: id(1) });
    expect(reply.consent?.scopes).to.deep.equal(["account.read"]);
    expect(reply.consent?.accountIds).to.deep.equal([id(8)]);
  });

  it("consent() is refused past as many clients as the limit says", () => {
    let state = grantListActor.initial as DeepReadonly<GrantListState>;
    for (let i = 0; i < CLIENTS_PER_USER_MAX; i++) {
      state = run("consent", state, { ...consent, clientId: id(100 + i) }).state;
    }
    expect(refusal(() => run("consent", state, consent)).code).to.equal("limit_reached");
    expect(run("consent", state, { ...consent, clientId: id(100) }).changed).to.equal(true);
  });

  it("revokeClient() forgets the client and ends its grants; repeated it does nothing", () => {
    const grant = { clientId: id(1), grantId: id(5) };
    const { state } = run("grantOpened", allowed, grant);
    const revoked = run("revokeClient", state, { clientId: id(1) });
    expect(revoked.reply.grantIds).to.deep.equal([id(5)]);
    expect(revoked.send.map(({ key, message }) => [key, message])).to.deep.equal([
      [id(5), "consentWithdrawn"],
    ]);
    expect(run("revokeClient", revoked.state, { clientId: id(1) }).changed).to.equal(false);
    // A grant that was opened meanwhile has nothing to rest on.
    const late = run("grantOpened", revoked.state, grant);
    expect(late.send.map(({ key }) => key)).to.deep.equal([id(5)]);
  });

  it("grantOpened() and grantEnded() count each grant once, and past the limit the oldest ends", () => {
    let state = allowed;
    for (let i = 0; i < GRANTS_PER_CLIENT_MAX; i++) {
      state = run("grantOpened", state, { clientId: id(1), grantId: id(1_000 + i) }).state;
    }
    const again = { clientId: id(1), grantId: id(1_000) };
    expect(run("grantOpened", state, again).changed).to.equal(false);
    const past = run("grantOpened", state, { clientId: id(1), grantId: id(2) });
    expect(past.send.map(({ key }) => key)).to.deep.equal([id(1_000)]);
    const ended = run("grantEnded", past.state, { clientId: id(1), grantId: id(2) });
    expect(ended.state.clients[0]?.grantIds).to.have.length(GRANTS_PER_CLIENT_MAX - 1);
    expect(run("grantEnded", ended.state, { clientId: id(1), grantId: id(2) }).changed).to.equal(
      false,
    );
    expect(run("grantEnded", ended.state, { clientId: id(7), grantId: id(2) }).changed).to.equal(
      false,
    );
  });
});

function run<N extends keyof typeof grantListActor.contract.messages>(
  message: N,
  state: DeepReadonly<GrantListState>,
  input: Parameters<(typeof grantListActor.handlers)[N]>[1],
) {
  return runHandler(grantListActor, message, state, input, { now: 1_000 });
}
