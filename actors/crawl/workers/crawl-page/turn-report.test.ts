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

  it("add() resolves when all outcomes are sent in order, at most REPORT_PAGES_MAX in a message", async () => {
    for (const count of [1, REPORT_PAGES_MAX, REPORT_PAGES_MAX + 1]) {
      sent = [];
      const reporting = report();
      await Promise.all(Array.from({ length: count }, (_, index) => reporting.add(outcome(index))));
      const indexes = sent.flatMap(outcomesOf).map(({ index }) => index);
      expect(indexes).to.deep.equal(Array.from({ length: count }, (_, index) => index));
      expect(Math.max(...sizes())).to.equal(Math.min(count, REPORT_PAGES_MAX));
    }
    expect(sizes()).to.deep.equal([REPORT_PAGES_MAX, 1]);
  });

  it("add() sends no message that is too large: a large outcome is sent alone", async () => {
    const link = `https://a.example/${"a".repeat(980)}`;
    const links = Array.from({ length: Math.floor(PAGE_LINKS_BYTES_MAX / 1_001) }, () => link);
    const half = links.slice(0, Math.floor(REPORT_BYTES_MAX / 2 / 1_001) - 1);
    const reporting = report();
    const all = [links, links, half, half, half];
    await Promise.all(all.map((some, index) => reporting.add(outcome(index, some))));
    expect(sizes()).to.deep.equal([1, 1, 2, 1]);
    for (const { input } of sent) {
      expect(JSON.stringify(input).length).to.be.below(MESSAGE_BYTES_MAX);
    }
  });

  it("counts the pages whose outcomes the job has accepted, and no others", async () => {
    for (heard of [true, false]) {
      const reporting = report();
      await Promise.all([3, 5].map((index) => reporting.add(outcome(index))));
      expect(reporting.reported).to.equal(heard ? 2 : 0);
    }
  });

  it("add() rejects if its report could not be sent, and ever after", async () => {
    const gone = new Error("gone");
    let tries = 0;
    const tell = () => {
      tries += 1;
      return Promise.reject(gone);
    };
    const reporting = new TurnReport({ turn, clock, tell });
    for (const index of [0, 1]) {
      expect(await reporting.add(outcome(index)).catch((error: unknown) => error)).to.equal(gone);
    }
    expect(tries).to.equal(1);
  });
});

function outcomesOf({ input }: Envelope): PageOutcome[] {
  return crawlJob.messages.turnReported.input.parse(input).outcomes;
}
