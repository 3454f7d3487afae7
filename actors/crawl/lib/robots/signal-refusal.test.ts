import { expect } from "chai";
import type { ContentSignal, CrawlPurpose } from "../../../../schemas/crawl/content-signal.ts";
import type { CrawlIntent } from "../../../../schemas/crawl/site.ts";
import { signalRefusal } from "./signal-refusal.ts";

const ALL: CrawlPurpose[] = ["search", "ai-input", "ai-train"];

describe("signalRefusal", () => {
  it("signalRefusal() refuses a crawl one of whose purposes is set to no", () => {
    const signal = { search: true, "ai-train": false };
    expect(refusal(signal, { purposes: ALL })).to.equal("Content-Signal says ai-train=no");
    expect(refusal(signal, { purposes: ["search", "ai-input"] })).to.equal(undefined);
    expect(refusal({}, { purposes: ALL })).to.equal(undefined);
  });

  it("signalRefusal() compares the level of use with the crawl's", () => {
    const uses = ["immediate", "reference", "full"] as const;
    const refused = (contentUse: CrawlIntent["contentUse"]) =>
      uses.map((use) => refusal({ use }, { purposes: ["search"], contentUse }) !== undefined);
    expect(refused("reference")).to.deep.equal([true, false, false]);
    expect(refused("full")).to.deep.equal([true, true, false]);
    expect(refused(undefined)).to.deep.equal([true, true, false]);
    expect(refusal({ use: "immediate" }, { purposes: ["search"], contentUse: "full" })).to.equal(
      "Content-Signal says use=immediate, the crawl's contentUse is full",
    );
  });
});

function refusal(signal: ContentSignal, intent: CrawlIntent): string | undefined {
  return signalRefusal(signal, intent);
}
