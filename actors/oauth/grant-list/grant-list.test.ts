import { expect } from "chai";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { MESSAGE_BYTES_MAX, ROW_BYTES_MAX } from "../../../schemas/limits.ts";
import type { AllowedClient } from "../../../schemas/oauth/grant-list.ts";
import {
  ACCOUNTS_PER_GRANT_MAX,
  CLIENTS_PER_PAGE,
  CLIENTS_PER_USER_MAX,
  GRANTS_PER_CLIENT_MAX,
} from "../../../schemas/oauth/limits.ts";
import { ALL_SCOPES } from "../../../schemas/oauth/scopes.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { grantListActor } from "./grant-list.ts";
import { AllowedClientRow, GrantListState } from "./grant-list-state.ts";

const id = (number: number) => number.toString(16).padStart(32, "0");
const consent = {
  clientId: id(1),
  scopes: ["apps.read" as const],
  rejectedScopes: ["apps.write" as const],
  accountIds: [id(9)],
};

describe("grant-list", () => {
  let state: DeepReadonly<GrantListState>;
  let rows: Map<string, DeepReadonly<AllowedClient>>;
  let now: number;
  beforeEach(() => {
    state = grantListActor.initial;
    rows = new Map();
    now = 1_000;
    run("consent", consent);
  });

  function run<N extends keyof typeof grantListActor.contract.messages>(
    message: N,
    input: Parameters<(typeof grantListActor.handlers)[N]>[1],
  ) {
    const handled = runHandler(grantListActor, message, state, input, { now, rows });
    const isSame = !handled.changed && Object.keys(handled.rows).length === 0;
    ({ state } = handled);
    for (const [name, row] of Object.entries(handled.rows)) {
      if (row === null) rows.delete(name);
      else rows.set(name, AllowedClientRow.parse(row));
    }
    return { ...handled, isSame };
  }
  const decided = () => run("getConsent", { clientId: id(1) }).reply.consent;

  it("consent() merges with an earlier decision for the same accounts; the latest choice wins", () => {
    run("consent", { ...consent, scopes: ["apps.write"], rejectedScopes: [] });
    expect(decided()?.scopes).to.deep.equal(["apps.read", "apps.write"]);
    expect(decided()?.rejectedScopes).to.deep.equal([]);
  });

  it("consent() replaces an earlier decision for the same accounts if the person joined one again since", () => {
    run("consent", { ...consent, invitationIds: [id(20)] });
    run("consent", { ...consent, scopes: ["account.read"], invitationIds: [id(21)] });
    expect(decided()).to.deep.include({ scopes: ["account.read"], invitationIds: [id(21)] });
    run("consent", { ...consent, scopes: ["apps.write"], invitationIds: [id(21)] });
    expect(decided()?.scopes).to.deep.equal(["account.read", "apps.write"]);
    run("consent", { ...consent, accountIds: [id(8)], invitationIds: [] });
    expect(decided()?.invitationIds).to.deep.equal([]);
  });

  it("consent() for other accounts replaces the earlier decision", () => {
    run("consent", { ...consent, scopes: ["account.read"], accountIds: [id(8)] });
    expect(decided()?.scopes).to.deep.equal(["account.read"]);
    expect(decided()?.accountIds).to.deep.equal([id(8)]);
  });

  it("consent() is refused past the limit of clients", () => {
    for (let i = 1; i < CLIENTS_PER_USER_MAX; i++)
      run("consent", { ...consent, clientId: id(100 + i) });
    const past = refusal(() => run("consent", { ...consent, clientId: id(2) }));
    expect(past.code).to.equal("limit_reached");
    now += 1;
    expect(run("consent", { ...consent, clientId: id(101) }).isSame).to.equal(false);
  });

  it("list() lists each client once, the latest consent first, in pages", () => {
    for (let i = 1; i < 2 * CLIENTS_PER_PAGE + 1; i++) {
      // Some at one time.
      now += i % 3 === 0 ? 0 : 1;
      run("consent", { ...consent, clientId: id(100 + i) });
    }
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const { reply }: { reply: { clients: AllowedClient[]; cursor?: string | undefined } } = run(
        "list",
        cursor === undefined ? {} : { cursor },
      );
      pages.push(reply.clients.map(({ clientId }) => clientId));
      // A revocation between two pages does not move the remaining entries.
      if (cursor === undefined) run("revokeClient", { clientId: pages[0]?.at(-1) ?? "" });
      ({ cursor } = reply);
    } while (cursor !== undefined);
    expect(pages.map((page) => page.length)).to.deep.equal([CLIENTS_PER_PAGE, CLIENTS_PER_PAGE, 1]);
    const all = pages.flat();
    expect(new Set(all).size).to.equal(2 * CLIENTS_PER_PAGE + 1);
    expect(all.at(-1)).to.equal(id(1));
    expect(all[0]).to.be.oneOf([id(200), id(199)]);
  });

  it("list() of exactly one page has no next page", () => {
    for (let i = 1; i < CLIENTS_PER_PAGE; i++)
      run("consent", { ...consent, clientId: id(100 + i) });
    const { reply } = run("list", {});
    expect([reply.clients.length, reply.cursor]).to.deep.equal([CLIENTS_PER_PAGE, undefined]);
  });

  it("revokeClient() removes the client and revokes its grants; repeating it changes nothing", () => {
    const grant = { clientId: id(1), grantId: id(5) };
    expect(run("addGrant", grant).reply).to.deep.equal({ isRecorded: true });
    expect(run("addGrant", grant).reply, "repeated").to.deep.equal({ isRecorded: true });
    expect(run("grantOpened", grant).isSame, "the same by mail").to.equal(true);
    const revoked = run("revokeClient", { clientId: id(1) });
    expect(revoked.reply.grantIds).to.deep.equal([id(5)]);
    expect(revoked.send.map(({ key, message }) => [key, message])).to.deep.equal([
      [id(5), "consentWithdrawn"],
    ]);
    expect(rows.size).to.equal(0);
    expect(run("revokeClient", { clientId: id(1) }).isSame).to.equal(true);
    // A grant that is opened after the revocation has no consent, so it is revoked.
    const late = run("grantOpened", grant);
    expect(late.send.map(({ key }) => key)).to.deep.equal([id(5)]);
    expect(run("addGrant", grant).reply).to.deep.equal({ isRecorded: false });
  });

  it("grantOpened() and grantEnded() count each grant once, and past the limit the oldest ends", () => {
    for (let i = 0; i < GRANTS_PER_CLIENT_MAX; i++) {
      expect(run("grantOpened", { clientId: id(1), grantId: id(1_000 + i) }).send).to.deep.equal(
        [],
      );
    }
    expect(run("grantOpened", { clientId: id(1), grantId: id(1_000) }).isSame).to.equal(true);
    const past = run("grantOpened", { clientId: id(1), grantId: id(2) });
    expect(past.send.map(({ key }) => key)).to.deep.equal([id(1_000)]);
    run("grantEnded", { clientId: id(1), grantId: id(2) });
    expect(rows.get(id(1))?.grantIds).to.have.length(GRANTS_PER_CLIENT_MAX - 1);
    expect(run("grantEnded", { clientId: id(1), grantId: id(2) }).isSame).to.equal(true);
    expect(run("grantEnded", { clientId: id(7), grantId: id(2) }).isSame).to.equal(true);
  });

  it("a client at all its limits fits into a row, and a page of clients into a message", () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => id(i));
    const largest = {
      clientId: id(1),
      scopes: [...ALL_SCOPES],
      rejectedScopes: [...ALL_SCOPES],
      accountIds: many(ACCOUNTS_PER_GRANT_MAX),
      invitationIds: many(ACCOUNTS_PER_GRANT_MAX + 1),
      grantIds: many(GRANTS_PER_CLIENT_MAX),
      consentedAt: Number.MAX_SAFE_INTEGER,
      lastGrantAt: Number.MAX_SAFE_INTEGER,
    };
    const bytes = Buffer.byteLength(JSON.stringify(AllowedClientRow.parse(largest)));
    expect(bytes).to.be.below(ROW_BYTES_MAX);
    expect(bytes * CLIENTS_PER_PAGE).to.be.below(MESSAGE_BYTES_MAX);
  });

  it("clients stored by the first release load, are listed, and become rows when they change", () => {
    const old = (number: number) => ({ ...consent, clientId: id(number), consentedAt: number });
    const bytes = JSON.stringify({
      clients: [old(1), old(2), old(3)].map((client) => ({ ...client, grantIds: [id(50)] })),
    });
    state = GrantListState.parse(JSON.parse(bytes));
    rows.clear();
    const listed = () => run("list", {}).reply.clients.map(({ clientId }) => clientId);
    expect(listed()).to.deep.equal([id(3), id(2), id(1)]);
    expect(decided()?.scopes).to.deep.equal(["apps.read"]);
    run("grantEnded", { clientId: id(2), grantId: id(50) });
    run("consent", consent);
    expect(run("revokeClient", { clientId: id(3) }).reply.grantIds).to.deep.equal([id(50)]);
    expect([state.clients, [...rows.keys()]]).to.deep.equal([[], [id(2), id(1)]]);
    expect(listed()).to.deep.equal([id(1), id(2)]);
    expect(rows.get(id(1))?.grantIds).to.deep.equal([id(50)]);
  });
});
