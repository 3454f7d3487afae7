import { expect } from "chai";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { DOMAIN_CHECK_LOST_MS, DOMAIN_POLL_FIRST_MS, DOMAIN_RECHECK_MS } from "./domain.ts";
import { ACCOUNT, by, complete, DrivenClient, pace } from "./testing/driven-client.ts";

const verification = (client: DrivenClient) => client.get().verification;
const actions = (client: DrivenClient) => client.changes().map(({ action }) => action);

describe("the domain of an oauth-client", () => {
  it("is looked up for its own text as soon as there is a client URL", () => {
    const client = DrivenClient.made(complete);
    const { text, ...shown } = verification(client) ?? {};
    expect(shown).to.deep.equal({
      ...{ status: "pending", host: "bot.example.com", nextCheckAt: client.now },
    });
    expect(text).to.match(/^vendor_oauth_client_publisher=[0-9a-f]{32}$/);
    expect(client.due.get("checkDomain")).to.equal(client.now);
    client.ask();
    expect(verification(client)?.status).to.equal("in_progress");
    expect(client.sent).to.deep.equal([
      {
        ...{
          to: "worker",
          kind: "dns-check",
          lane: "dns",
          key: "c".repeat(32),
          message: "findText",
        },
        input: { host: "bot.example.com", text, check: 1 },
      },
    ]);
    const without = DrivenClient.made();
    expect(verification(without)).to.equal(undefined);
    without.run("checkDomain", {});
    expect(without.changed).to.equal(false);
  });

  it("is looked up again after a pause that doubles each time, up to the setting", () => {
    const client = DrivenClient.made(complete);
    const pauses: number[] = [];
    for (let lookup = 0; lookup < 6; lookup++) {
      client.check(lookup % 2 === 0 ? "absent" : "unanswered");
      pauses.push((client.due.get("checkDomain") ?? 0) - client.now);
    }
    const first = DOMAIN_POLL_FIRST_MS;
    const most = pace.pollMs;
    expect(pauses).to.deep.equal([first, 2 * first, 4 * first, most, most, most]);
    expect(verification(client)).to.include({
      ...{ status: "in_progress", lastAnswer: "it was unanswered", lastCheckedAt: client.now },
      nextCheckAt: client.now + most,
    });
  });

  it("is verified once the text is found, which is logged once", () => {
    const client = DrivenClient.made(complete);
    client.check("absent");
    client.check("found");
    expect(verification(client)).to.include({ status: "verified", verifiedAt: client.now });
    expect(client.live).to.deep.equal({ change: "updated" });
    expect(client.due.get("checkDomain")).to.equal(client.now + DOMAIN_RECHECK_MS);
    expect(actions(client)).to.deep.equal(["verified", "created"]);
    expect(client.changes()[0]?.by).to.deep.equal({ type: "system", id: "" });
  });

  it("ignores a lookup result that arrives twice or too late", () => {
    const client = DrivenClient.made(complete);
    const first = client.ask();
    const second = client.ask();
    expect(second).to.equal(first + 1);
    client.report(first, "found");
    expect(client.changed).to.equal(false);
    client.report(second, "absent");
    client.report(second, "found");
    expect(client.changed).to.equal(false);
    client.ask();
    client.update({ clientUri: "https://other.example.com/" });
    client.report(3, "found");
    expect(verification(client)?.status).to.equal("pending");
    client.report(3, "found");
    expect(client.changed).to.equal(false);
    client.ask();
    client.update({ clientUri: null });
    client.report(4, "found");
    expect(verification(client)).to.equal(undefined);
    expect(client.due.size).to.equal(0);
    client.report(4, "found");
    expect(client.changed).to.equal(false);
  });

  it("repeats a lost lookup after DOMAIN_CHECK_LOST_MS, and then after longer pauses", () => {
    const client = DrivenClient.made(complete);
    client.check("absent");
    const pauses: number[] = [];
    for (let lookup = 0; lookup < 4; lookup++) {
      client.ask();
      pauses.push((client.due.get("checkDomain") ?? 0) - client.now);
    }
    const first = DOMAIN_CHECK_LOST_MS;
    const heard = DOMAIN_POLL_FIRST_MS;
    expect(pauses).to.deep.equal([
      first,
      first + heard,
      2 * first + 2 * heard,
      4 * (first + heard),
    ]);
  });

  it("fails exactly when its time window ends, whatever results arrived", () => {
    const client = DrivenClient.made(complete);
    const end = client.now + pace.windowMs;
    let lookups = 0;
    while (client.due.get("checkDomain") !== end) {
      client.check("absent");
      lookups++;
    }
    expect(lookups).to.be.within(2_870, 2_890);
    expect(verification(client)?.status).to.equal("in_progress");
    expect(client.ask()).to.equal(0);
    expect(client.now).to.equal(end);
    expect(verification(client)).to.include({ status: "failed", lastAnswer: "it was absent" });
    expect(verification(client)).to.not.have.property("nextCheckAt");
    expect(client.due.size).to.equal(0);
    expect(actions(client)[0]).to.equal("verification_failed");
    client.run("checkDomain", {});
    expect(client.changed).to.equal(false);
  });

  it("fails in time even if no worker ever responds", () => {
    const client = DrivenClient.made(complete);
    const end = client.now + pace.windowMs;
    let lookups = 0;
    while (client.ask() > 0) lookups++;
    expect(verification(client)?.status).to.equal("failed");
    expect(client.now).to.equal(end);
    expect(lookups).to.be.below(12);
  });

  it("starts again when the client URL is sent again, with the same text", () => {
    const client = DrivenClient.made(complete);
    const { text } = verification(client) ?? {};
    client.check("absent");
    client.now += pace.windowMs;
    client.due.set("checkDomain", client.now);
    client.ask();
    expect(verification(client)?.status).to.equal("failed");
    client.update({ clientUri: complete.clientUri });
    expect(verification(client)).to.deep.include({
      ...{ status: "pending", text, lastAnswer: "it was absent", nextCheckAt: client.now },
    });
    expect(actions(client)[0]).to.equal("verification_started");
    client.check("found");
    expect(verification(client)?.status).to.equal("verified");
  });

  it("continues when the same client URL is sent again, without an entry in the log", () => {
    const client = DrivenClient.made(complete);
    client.check("absent");
    const { length } = actions(client);
    client.now += 1_000;
    client.update({ clientUri: complete.clientUri });
    expect(verification(client)).to.include({ status: "pending", nextCheckAt: client.now });
    expect(actions(client)).to.have.length(length);
    expect(client.ask()).to.be.greaterThan(0);
  });

  it("queues no second lookup when the client URL is sent again; the result starts the next one", () => {
    for (const client of [DrivenClient.made(complete), DrivenClient.verified()]) {
      const open = client.ask();
      const lostAt = client.now + DOMAIN_CHECK_LOST_MS;
      for (const host of ["other", "bot"]) {
        client.now += 1;
        client.update({ clientUri: `https://${host}.example.com/` });
        client.run("checkDomain", {});
        expect(client.due.get("checkDomain")).to.equal(lostAt);
        expect(client.sent).to.deep.equal([]);
      }
      const { status, lastAnswer } = verification(client) ?? {};
      client.report(open, "absent");
      // The result is older than the request, so it does not count.
      expect(verification(client)?.status).to.equal(status);
      expect(verification(client)?.lastAnswer).to.equal(lastAnswer);
      expect(client.due.get("checkDomain")).to.equal(client.now);
      expect(client.ask()).to.equal(open + 1);
      client.report(open + 1, "found");
      expect(verification(client)?.status).to.equal("verified");
    }
  });

  it("does not count an answer to a lookup before the client URL of a verified client was sent again", () => {
    const client = DrivenClient.verified();
    const open = client.ask();
    client.update({ clientUri: complete.clientUri });
    client.report(open, "absent");
    expect(verification(client)).to.not.have.property("missingSince");
    client.check("found");
    expect(verification(client)).to.include({ lastAnswer: "it was found" });
  });

  it("waits for a lookup up to DOMAIN_CHECK_LOST_MS, and not past the end of its time window", () => {
    const lost = DrivenClient.made(complete);
    const open = lost.ask();
    lost.update({ clientUri: complete.clientUri });
    lost.run("checkDomain", {});
    expect(lost.ask()).to.equal(open + 1);
    lost.report(open, "found");
    expect(lost.changed).to.equal(false);

    const short = DrivenClient.made(complete);
    short.ask();
    const windowMs = DOMAIN_CHECK_LOST_MS / 2;
    const patch = { clientUri: complete.clientUri };
    short.run("update", { accountId: ACCOUNT, by, patch, pace: { ...pace, windowMs } });
    const end = short.now + windowMs;
    short.run("checkDomain", {});
    expect(short.due.get("checkDomain")).to.equal(end);
    expect(short.ask()).to.equal(0);
    expect(verification(short)?.status).to.equal("failed");
    short.report(1, "found");
    expect(verification(short)?.status).to.equal("failed");
  });

  it("starts again for another host; another path of the same host stays verified", () => {
    const client = DrivenClient.verified();
    client.update({ clientUri: "https://bot.example.com/other" });
    expect(verification(client)?.status).to.equal("verified");
    client.update({ clientUri: "https://other.example.com/" });
    expect(verification(client)).to.include({ status: "pending", host: "other.example.com" });
    expect(verification(client)).to.not.have.any.keys("verifiedAt", "lastAnswer");
    client.update({ clientUri: null });
    expect(verification(client)).to.equal(undefined);
    expect(client.due.size).to.equal(0);
  });

  it("is looked up every DOMAIN_RECHECK_MS, and flagged when the text is gone", () => {
    const client = DrivenClient.public();
    client.check("unanswered");
    expect(verification(client)).to.not.have.property("missingSince");
    client.check("absent");
    const since = client.now;
    expect(client.get().visibility).to.equal("public");
    expect(verification(client)).to.include({ status: "verified", missingSince: since });
    expect(client.live).to.deep.equal({ change: "updated" });
    client.check("absent");
    expect(client.now - since).to.equal(DOMAIN_RECHECK_MS);
    expect(client.live).to.equal(undefined);
    client.check("unanswered");
    expect(verification(client)).to.include({ missingSince: since });
    client.check("found");
    expect(verification(client)).to.not.have.property("missingSince");
    expect(actions(client).slice(0, 3)).to.deep.equal([
      "record_back",
      "record_missing",
      "promoted",
    ]);
  });

  it("is looked up at once when the client URL of a verified client is sent again", () => {
    const client = DrivenClient.verified();
    client.now += 1_000;
    client.update({ clientUri: complete.clientUri });
    expect(verification(client)).to.include({ status: "verified", nextCheckAt: client.now });
    expect(client.due.get("checkDomain")).to.equal(client.now);
    client.check("absent");
    expect(verification(client)).to.include({ missingSince: client.now });
  });
});

describe("the visibility of an oauth-client", () => {
  it("becomes public once all parts exist, and stays public", () => {
    const client = DrivenClient.verified();
    client.now += 5;
    const reply = client.update({}, "public");
    expect(reply).to.include({ visibility: "public", promotedAt: client.now });
    expect(actions(client)[0]).to.equal("promoted");
    client.update({}, "public");
    expect(client.changed).to.equal(false);
    const back = refusal(() => client.update({}, "private"));
    expect(back.code).to.equal("conflict");
    expect(back.message).to.contain("for good");
  });

  it("stays private when private is requested", () => {
    const client = DrivenClient.made();
    client.update({}, "private");
    expect(client.changed).to.equal(false);
  });

  it("is refused with the name of each missing part", () => {
    const faultsOf = (client: DrivenClient) => {
      const refused = refusal(() => client.update({}, "public"));
      expect(refused.code).to.equal("conflict");
      return refused.details.faults?.map(({ pointer }) => pointer);
    };
    expect(faultsOf(DrivenClient.made())).to.deep.equal(["/logo_uri", "/client_uri"]);
    expect(faultsOf(DrivenClient.made(complete))).to.deep.equal(["/client_uri"]);
    const { clientUri = "" } = complete;
    expect(faultsOf(DrivenClient.made({ clientUri }))).to.deep.equal(["/logo_uri", "/client_uri"]);
    const scopes = ["openid" as const, "email" as const];
    expect(faultsOf(DrivenClient.verified({ scopes, optionalScopes: [] }))).to.deep.equal([
      "/scopes",
    ]);
    const gone = DrivenClient.verified();
    gone.check("absent");
    expect(faultsOf(gone)).to.deep.equal(["/client_uri"]);
    gone.check("found");
    gone.update({}, "public");
  });

  it("may be set together with the missing parts, but not with an unverified host", () => {
    const { logoUri, ...bare } = complete;
    const client = DrivenClient.made(bare);
    client.check("found");
    const moved = { logoUri, clientUri: "https://other.example.com/" };
    expect(refusal(() => client.update(moved, "public")).code).to.equal("conflict");
    expect(client.get()).to.not.have.property("logoUri");
    client.update({ logoUri }, "public");
    expect(client.get().visibility).to.equal("public");
  });

  it("a public client keeps its required parts and its host", () => {
    const client = DrivenClient.public();
    const losses: [Parameters<typeof client.update>[0], string][] = [
      [{ logoUri: null }, "/logo_uri"],
      [{ clientUri: null }, "/client_uri"],
      [{ clientUri: "https://other.example.com/about" }, "/client_uri"],
      [{ scopes: ["openid"], optionalScopes: [] }, "/scopes"],
    ];
    for (const [patch, pointer] of losses) {
      const refused = refusal(() => client.update(patch));
      expect(refused.code).to.equal("conflict");
      expect(refused.details.faults?.map((fault) => fault.pointer)).to.deep.equal([pointer]);
    }
    client.update({ clientUri: "https://bot.example.com/elsewhere", clientName: "Other" });
    expect(client.get()).to.include({ clientUri: "https://bot.example.com/elsewhere" });
  });
});
