import { expect } from "chai";
import type { Envelope } from "../../../../schemas/contract.ts";
import { crawlJob, type PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import { REPORT_BYTES_MAX, REPORT_PAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import { MESSAGE_BYTES_MAX } from "../../../../schemas/limits.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { PAGE_LINKS_BYTES_MAX } from "../../lib/records/page-record.ts";
import { TurnReport } from "./turn-report.ts";

const turn = { job: "a".repeat(32), host: "a.example", turn: "b".repeat(32) };

describe("TurnReport", () => {
  let sent: Envelope[];
  let heard: boolean;
  beforeEach(() => {
    sent = [];
    heard = true;
  });
  const sizes = () => sent.map((one) => outcomesOf(one).length);
  const report = () =>
    new TurnReport({
      turn,
      clock,
      tell: async (envelope) => {
        sent.push(envelope);
        return heard;
      },
    });
  const outcome = (index: number, links: string[] = []): PageOutcome => ({
    ...{ kind: "fetched", index, blobs: [], links, browserMs: 0 },
    metadata: { status: 200, url: "https://a.example/" },
  });

  it("end() has sent all outcomes in order, at most REPORT_PAGES_MAX in a message", async () => {
    for (const count of [1, REPORT_PAGES_MAX, REPORT_PAGES_MAX + 1]) {
      sent = [];
      const reporting = report();
      for (let index = 0; index < count; index++) reporting.add(outcome(index));
      await reporting.end();
      const indexes = sent.flatMap(outcomesOf).map(({ index }) => index);
      expect(indexes).to.deep.equal(Array.from({ length: count }, (_, index) => index));
      expect(Math.max(...sizes())).to.equal(Math.min(count, REPORT_PAGES_MAX));
    }
    expect(sizes()).to.deep.equal([REPORT_PAGES_MAX, 1]);
  });

  it("end() sends no message that is too large: a large outcome is sent alone", async () => {
    const link = `https://a.example/${"a".repeat(980)}`;
    const links = Array.from({ length: Math.floor(PAGE_LINKS_BYTES_MAX / 1_001) }, () => link);
    const half = links.slice(0, Math.floor(REPORT_BYTES_MAX / 2 / 1_001) - 1);
    const reporting = report();
    for (const [index, some] of [links, links, half, half, half].entries()) {
      reporting.add(outcome(index, some));
    }
    await reporting.end();
    expect(sizes()).to.deep.equal([1, 1, 2, 1]);
    for (const { input } of sent) {
      expect(JSON.stringify(input).length).to.be.below(MESSAGE_BYTES_MAX);
    }
  });

  it("counts the pages whose outcomes the job has accepted, and no others", async () => {
    for (heard of [true, false]) {
      const reporting = report();
      for (const index of [3, 5]) reporting.add(outcome(index));
      await reporting.end();
      expect(reporting.reported).to.equal(heard ? 2 : 0);
    }
  });

  it("end() rejects if a report could not be sent", async () => {
    const gone = new Error("gone");
    const reporting = new TurnReport({ turn, clock, tell: () => Promise.reject(gone) });
    reporting.add(outcome(0));
    expect(await reporting.end().catch((error: unknown) => error)).to.equal(gone);
  });
});

function outcomesOf({ input }: Envelope): PageOutcome[] {
  return crawlJob.messages.turnReported.input.parse(input).outcomes;
}
