import { expect } from "chai";
import { RobotsOutcome } from "../../../../schemas/crawl/site.ts";
import { type RobotsFetch, robotsAnswer, robotsOutcomeOf } from "./robots-outcome.ts";

const FILE = "User-agent: *\nDisallow: /a\n";

describe("robotsOutcomeOf", () => {
  it("robotsOutcomeOf() reads the rules of a response", () => {
    expect(outcomeOf(answered(200))).to.deep.include({ kind: "rules" });
  });

  it("robotsOutcomeOf() allows all if there is no file: 4xx, endless redirects", () => {
    const fetches = [
      ...[300, 304, 400, 401, 403, 404, 410, 451, 499].map(answered),
      { kind: "redirected_away" } as const,
    ];
    for (const fetched of fetches) {
      const outcome = outcomeOf(fetched);
      expect(outcome.kind, JSON.stringify(fetched)).to.equal("allow_all");
      expect(robotsAnswer(outcome, "https://a.example/a")).to.deep.equal({ allowed: true });
    }
  });

  it("robotsOutcomeOf() disallows all while the site is unreachable", () => {
    const lost = { kind: "unreachable", because: "the name cannot be resolved" } as const;
    for (const fetched of [...[429, 500, 503, 599].map(answered), lost]) {
      expect(outcomeOf(fetched).kind).to.equal("disallow_all");
    }
    expect(robotsAnswer(outcomeOf(lost), "https://a.example/").reason).to.equal(
      "robots.txt cannot be read: the name cannot be resolved",
    );
    expect(robotsAnswer(outcomeOf(answered(503)), "https://a.example/").reason).to.equal(
      "robots.txt cannot be read: it answered 503",
    );
  });

  it("robotsOutcomeOf() returns plain data that survives a message", () => {
    const lost = { kind: "unreachable", because: "the name cannot be resolved" } as const;
    for (const fetched of [answered(200), answered(404), answered(500), lost]) {
      const outcome = outcomeOf(fetched);
      expect(RobotsOutcome.parse(JSON.parse(JSON.stringify(outcome)))).to.deep.equal(outcome);
    }
  });
});

describe("robotsAnswer", () => {
  it("robotsAnswer() distinguishes a host without a response from one that disallows", () => {
    const lost = outcomeOf({ kind: "unreachable", because: "the name cannot be resolved" });
    expect(robotsAnswer(lost, "https://a.example/")).to.include({ unreachable: true });
    for (const outcome of [answered(503), answered(200)].map(outcomeOf)) {
      expect(robotsAnswer(outcome, "https://a.example/a")).to.not.have.property("unreachable");
    }
  });

  it("robotsAnswer() names the line that disallows an address", () => {
    const outcome = outcomeOf(answered(200));
    expect(robotsAnswer(outcome, "https://a.example/a/b")).to.deep.equal({
      allowed: false,
      rule: { line: 2, text: "Disallow: /a" },
      reason: "robots.txt line 2: Disallow: /a",
    });
    expect(robotsAnswer(outcome, "https://a.example/b")).to.deep.equal({ allowed: true });
  });
});

function answered(status: number): RobotsFetch {
  return { kind: "answered", status, body: new TextEncoder().encode(FILE) };
}

function outcomeOf(fetched: RobotsFetch): RobotsOutcome {
  return robotsOutcomeOf(fetched, { productToken: "TestBot", url: "https://a.example/robots.txt" });
}
