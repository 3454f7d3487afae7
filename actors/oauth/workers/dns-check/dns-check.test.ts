import { expect } from "chai";
import { ActorError } from "../../../../schemas/errors.ts";
import { DNS_ANSWER_CHARS_MAX } from "../../../../schemas/oauth/limits.ts";
import { DnsServer, type TxtAnswer } from "../../../../scripts/testing/dns-server.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { DNS_LOOKUPS_MAX, DNS_TRIES, DNS_TRY_MS, dnsCheckWorker } from "./dns-check.ts";
import { DNS_RECORDS_SHOWN_MAX } from "./finding.ts";

const TEXT = `vendor_oauth_client_publisher=${"c".repeat(32)}`;
const HOST = "bot.example.com";
const CLIENT = "1".repeat(32);
const INPUT = { host: HOST, text: TEXT, check: 7 };

/** The timeout in tests in which the DNS server does not answer or does not exist. */
const SHORT_MS = 500;

describe("dns-check", function () {
  this.timeout(60_000);
  let server: DnsServer;
  beforeEach(async () => {
    server = await DnsServer.start();
  });
  afterEach(() => server[Symbol.asyncDispose]());

  const worker = (servers = [server.address], tryMs = 20_000) =>
    dnsCheckWorker({ servers, timing: { tryMs, tries: DNS_TRIES } });

  async function find(answer?: TxtAnswer, servers?: string[], tryMs?: number) {
    if (answer !== undefined) server.records.set(HOST, answer);
    const context = taskContext({ key: CLIENT });
    const { send } = await worker(servers, tryMs).handlers.findText(INPUT, context);
    const [report, ...more] = typeof send === "function" ? send() : (send ?? []);
    expect(more).to.deep.equal([]);
    const { input, ...address } = report ?? {};
    expect(address).to.deep.equal({
      ...{ to: "actor", kind: "oauth-client", key: CLIENT, message: "domainChecked" },
    });
    const { check, ...finding } = input as { check: number; outcome: string; answer: string };
    expect(check).to.equal(7);
    return finding;
  }

  it("findText() finds the text among others, over UDP", async () => {
    const found = await find([["v=spf1 -all"], [TEXT], ["other"]]);
    expect(found).to.deep.equal({ outcome: "found", answer: `TXT "${TEXT}"` });
    expect(server.asked).to.deep.equal([{ name: HOST, over: "udp" }]);
  });

  it("findText() joins the strings within one record, not across records", async () => {
    expect(await find([[TEXT.slice(0, 10), TEXT.slice(10, 30), TEXT.slice(30)]])).to.include({
      outcome: "found",
    });
    expect(await find([[TEXT.slice(0, 10)], [TEXT.slice(10)]])).to.include({ outcome: "absent" });
  });

  it("findText() requires the exact text", async () => {
    for (const wrong of [` ${TEXT}`, `${TEXT} `, `"${TEXT}"`, TEXT.toUpperCase(), `${TEXT}1`]) {
      const { outcome, answer } = await find([[wrong]]);
      expect(outcome).to.equal("absent");
      expect(answer).to.equal(`TXT ${JSON.stringify(wrong)}`);
    }
  });

  it("findText() retries a truncated UDP answer over TCP", async () => {
    const long = Array.from({ length: 30 }, (_, number) => [`${number} ${"x".repeat(200)}`]);
    expect(await find([...long, [TEXT]])).to.include({ outcome: "found" });
    expect(server.asked.map(({ over }) => over)).to.deep.equal(["udp", "tcp"]);
  });

  const refused: [TxtAnswer | undefined, string, RegExp][] = [
    [undefined, "absent", /domain does not exist/],
    [[], "absent", /no TXT record/],
    ["SERVFAIL", "unanswered", /SERVFAIL/],
    ["REFUSED", "unanswered", /REFUSED/],
    ["silence", "unanswered", /in time/],
  ];
  for (const [answer, outcome, expected] of refused) {
    it(`findText() reports the answer ${JSON.stringify(answer)} as ${outcome}`, async () => {
      const finding = await find(answer, undefined, answer === "silence" ? SHORT_MS : undefined);
      expect(finding.outcome).to.equal(outcome);
      expect(finding.answer).to.match(expected);
    });
  }

  it("findText() queries the next server if one does not answer", async () => {
    await using silent = await DnsServer.start();
    silent.records.set(HOST, "silence");
    const finding = await find([[TEXT]], [silent.address, server.address], 2_000);
    expect(finding.outcome).to.equal("found");
    expect(silent.asked).to.not.deep.equal([]);
  });

  it("findText() queries a silent server DNS_TRIES times", async () => {
    expect(await find("silence", undefined, SHORT_MS)).to.include({ outcome: "unanswered" });
    await until("the last question", () => server.asked.length >= DNS_TRIES);
    expect(server.asked).to.have.length(DNS_TRIES);
  });

  it("findText() waits DNS_TRY_MS for a server, and runs DNS_LOOKUPS_MAX lookups at a time", async () => {
    const { slots, handlers } = dnsCheckWorker({ servers: [server.address] });
    expect(slots).to.deep.equal({ dns: DNS_LOOKUPS_MAX });
    server.records.set(HOST, "silence");
    const stopping = new AbortController();
    const context = taskContext({ key: CLIENT, signal: stopping.signal });
    const before = performance.now();
    const finding = handlers.findText(INPUT, context).catch(() => {});
    await until("the next question", () => server.asked.length === 2, 10 * DNS_TRY_MS);
    // The factor tolerates the coarse timer of the resolver.
    expect(performance.now() - before).to.be.greaterThan(DNS_TRY_MS * 0.9);
    stopping.abort();
    await finding;
  });

  it("findText() reports a server that does not listen", async () => {
    const closed = await DnsServer.start();
    await closed[Symbol.asyncDispose]();
    expect(await find(undefined, [closed.address], SHORT_MS)).to.include({ outcome: "unanswered" });
  });

  it("findText() lists DNS_RECORDS_SHOWN_MAX records and the number of the others", async () => {
    const many = (count: number) => Array.from({ length: count }, (_, number) => [`r${number}`]);
    const all = await find(many(DNS_RECORDS_SHOWN_MAX));
    expect(all.answer).to.match(/"r9"$/);
    const more = await find(many(DNS_RECORDS_SHOWN_MAX + 2));
    expect(more.answer).to.match(/"r9" and 2 more$/);
  });

  it("findText() truncates an answer to DNS_ANSWER_CHARS_MAX characters, and quotes the domain's text", async () => {
    const strings = (chars: number) => {
      const text = "x".repeat(chars - 'TXT ""'.length);
      return [text.slice(0, 250), text.slice(250)];
    };
    const whole = await find([strings(DNS_ANSWER_CHARS_MAX)]);
    expect(whole.answer).to.have.length(DNS_ANSWER_CHARS_MAX).and.match(/x"$/);
    const cut = await find([strings(DNS_ANSWER_CHARS_MAX + 1)]);
    expect(cut.answer).to.have.length(DNS_ANSWER_CHARS_MAX).and.match(/x…$/);
    const odd = await find([['<b>"\n\u0000']]);
    expect(odd.answer).to.equal(String.raw`TXT "<b>\"\n\u0000"`);
  });

  it("findText() ends when its task's signal aborts, so that another worker gets the task", async () => {
    server.records.set(HOST, "silence");
    const stopping = new AbortController();
    const { signal } = stopping;
    const patient = dnsCheckWorker({ servers: [server.address] });
    const context = taskContext({ key: CLIENT, signal });
    const finding = patient.handlers.findText(INPUT, context).then(
      () => "finished",
      (error: unknown) => error,
    );
    await until("a question", () => server.asked.length > 0);
    stopping.abort(new Error("we stop"));
    expect(await finding).to.equal(signal.reason);
  });

  it("an abandoned task counts as a lookup without an answer", () => {
    const given = new ActorError("unavailable", "Cannot finish task: too many tries");
    const context = { id: "task", key: CLIENT };
    const [report] = worker().failures.findText(INPUT, given, context);
    expect(report?.input).to.deep.include({ check: 7, outcome: "unanswered" });
  });
});
