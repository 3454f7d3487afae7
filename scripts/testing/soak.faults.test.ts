import { expect } from "chai";
import { soakPlatform } from "./platform-soak.ts";

/** Duration of this test. `npm run soak` runs for an hour, or for `--minutes`. */
const MINUTES = 3;

describe("a soak of the whole platform", function () {
  this.timeout(900_000);

  it(`loses nothing and does not grow in ${MINUTES} minutes, while the time of day jumps by days`, async () => {
    const report = await soakPlatform(MINUTES, () => {});
    for (const { name, early, late } of report.figures) {
      console.log(`      ${name}: ${early}, later ${late}`);
    }
    expect(report.problems).to.deep.equal([]);
    const kinds = ["commits", "pdfs", "agents", "crawls", "tokens"];
    for (const kind of kinds) expect(report.work[kind], kind).to.be.above(0);
    expect(report.jumps, report.means).to.equal(6);
    expect(report.work.timers).to.equal(report.jumps);
  });
});
