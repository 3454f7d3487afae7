import { expect } from "chai";
import { ROBOTS_KEPT_MS, ROBOTS_RETRY_MS } from "../../schemas/crawl-limits.ts";
import { type RobotsFetch, RobotsState, robotsAnswer, robotsStateOf } from "./robots-state.ts";

const NOW = 1_000_000;
const FILE = "User-agent: *\nDisallow: /a\n";

describe("robotsStateOf", () => {
  it("robotsStateOf() keeps the rules of an answer for a day at most", () => {
    const state = stateOf(answered(200));
    expect(state.policy).to.deep.include({ kind: "rules" });
    expect(state.expiresAt).to.equal(NOW + ROBOTS_KEPT_MS);
    expect(ROBOTS_KEPT_MS).to.be.at.most(24 * 3_600_000);
  });

  it("robotsStateOf() allows all where there is no file: 4xx, redirects without end", () => {
    const fetches = [
      ...[300, 304, 400, 401, 403, 404, 410, 429, 451, 499].map(answered),
      { kind: "redirected_away" } as const,
    ];
    for (const fetched of fetches) {
      const state = stateOf(fetched);
      expect(state.policy.kind, JSON.stringify(fetched)).to.equal("allow_all");
      expect(state.expiresAt).to.equal(NOW + ROBOTS_KEPT_MS);
      expect(robotsAnswer(state, "https://a.example/a")).to.deep.equal({ allowed: true });
    }
  });

  it("robotsStateOf() disallows all while the site cannot be asked, and comes back soon", () => {
    const lost = { kind: "unreachable", because: "the name cannot be resolved" } as const;
    for (const fetched of [...[500, 503, 599].map(answered), lost]) {
      const state = stateOf(fetched);
      expect(state.policy.kind).to.equal("disallow_all");
      expect(state.expiresAt).to.equal(NOW + ROBOTS_RETRY_MS);
    }
    expect(robotsAnswer(stateOf(lost), "https://a.example/").reason).to.equal(
      "robots.txt cannot be read: the name cannot be resolved",
    );
    expect(robotsAnswer(stateOf(answered(503)), "https://a.example/").reason).to.equal(
      "robots.txt cannot be read: it answered 503",
    );
  });

  it("robotsStateOf() makes plain data that loads again", () => {
    for (const fetched of [answered(200), answered(404), answered(500)]) {
      const state = stateOf(fetched);
      expect(RobotsState.parse(JSON.parse(JSON.stringify(state)))).to.deep.equal(state);
    }
  });
});

describe("robotsAnswer", () => {
  it("robotsAnswer() says which line forbids an address", () => {
    const state = stateOf(answered(200));
    expect(robotsAnswer(state, "https://a.example/a/b")).to.deep.equal({
      allowed: false,
      rule: { line: 2, text: "Disallow: /a" },
      reason: "robots.txt, line 2: Disallow: /a",
    });
    expect(robotsAnswer(state, "https://a.example/b")).to.deep.equal({ allowed: true });
  });
});

function answered(status: number): RobotsFetch {
  return { kind: "answered", status, body: new TextEncoder().encode(FILE) };
}

function stateOf(fetched: RobotsFetch): RobotsState {
  const url = "https://a.example/robots.txt";
  return robotsStateOf(fetched, { productToken: "TestBot", url, now: NOW });
}
