import { expect } from "chai";
import { soakPlatform } from "./platform-soak.ts";

/** Duration of this test. `npm run soak` runs for an hour, or for `--minutes`. */
const MINUTES = 3;

/**
 * A refusal that loses nothing: an actor did not answer within the deadline. On a machine whose processors are busy with
 * other tests, a few calls get it. The soak by hand, on a machine of its own, allows none.
 */
const TOO_SLOW = /\b503 .*no answer in time/;
const TOO_SLOW_MAX = 10;

describe("a soak of the whole platform", function () {
  this.timeout(900_000);

  it(`loses nothing and does not grow in ${MINUTES} minutes, while the time of day jumps by days`, async () => {
    const report = await soakPlatform(MINUTES, () => {});
    for (const { name, early, late } of report.figures) {
      console.log(`      ${name}: ${early}, later ${late}`);
    }
    const tooSlow = report.problems.filter((problem) => TOO_SLOW.test(problem));
    expect(report.problems).to.deep.equal(tooSlow);
    expect(tooSlow.length, tooSlow.join("\n")).to.be.at.most(TOO_SLOW_MAX);
    const kinds = ["commits", "pdfs", "agents", "crawls", "tokens"];
    for (const kind of kinds) expect(report.work[kind], kind).to.be.above(0);
    expect(report.jumps, report.means).to.equal(6);
    expect(report.work.timers).to.equal(report.jumps);
  });
});
