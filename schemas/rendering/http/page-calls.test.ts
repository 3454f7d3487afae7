import { expect } from "chai";
import { SELECTOR_CHARS_MAX } from "../../limits.ts";
import {
  ACTION_TEXT_CHARS_MAX,
  ACTIONS_MAX,
  SCRAPE_SELECTORS_MAX,
  SETTLE_MS_MAX,
} from "../limits.ts";
import { PAGE_CALLS, type PageCallName } from "./page-calls.ts";

const many = (count: number) => Array.from({ length: count }, () => ({ selector: "a" }));
const clicks = (count: number) =>
  Array.from({ length: count }, () => ({ type: "click", selector: "a" }));
const NEEDED: Partial<Record<PageCallName, object>> = {
  scrape: { elements: [{ selector: "a" }] },
  json: { prompt: "x" },
};

/** For each case: the call, the path of a field that errors must name, accepted values, and refused values. */
const SAMPLES: [PageCallName, string, unknown[], unknown[]][] = [
  ["links", "excludeExternalLinks", [true, false], ["true", null]],
  ["content", "timezone", ["Europe/Berlin", "UTC"], ["Mars/Base", "", 1]],
  ["content", "locale", ["de", "de-CH"], ["not a tag", ""]],
  ["content", "geolocation/latitude", [], [{ latitude: 90.1, longitude: 0 }]],
  ["content", "geolocation", [{ latitude: 90, longitude: -180, accuracy: 0 }], ["Bern"]],
  ["content", "colorScheme", ["light", "dark"], ["no-preference"]],
  ["content", "reducedMotion", ["reduce", "no-preference"], [true]],
  ["content", "actions", [[], clicks(ACTIONS_MAX)], [clicks(ACTIONS_MAX + 1)]],
  [
    "content",
    "actions/0",
    [[{ type: "scroll", y: 9 }], [{ type: "click", x: 1, y: 2 }]],
    [["click"]],
  ],
  ["content", "actions/0/type", [], [[{ type: "drag" }]]],
  [
    "content",
    "actions/0/selector",
    [],
    [
      [{ type: "click" }],
      [{ type: "click", selector: "a", x: 1, y: 1 }],
      [{ type: "click", x: 1 }],
      [{ type: "scroll" }],
    ],
  ],
  [
    "content",
    "actions/0/text",
    [[{ type: "type", selector: "a", text: "x".repeat(ACTION_TEXT_CHARS_MAX) }]],
    [[{ type: "type", selector: "a", text: "x".repeat(ACTION_TEXT_CHARS_MAX + 1) }]],
  ],
  [
    "content",
    "waitForFunction/polling",
    [{ function: "1", polling: 10 }],
    [{ function: "1", polling: 9 }],
  ],
  [
    "content",
    "gotoOptions/settleTimeout",
    [{ settleTimeout: SETTLE_MS_MAX }],
    [{ settleTimeout: SETTLE_MS_MAX + 1 }],
  ],
  ["content", "report", [true], ["yes"]],
  ["links", "visibleLinksOnly", [true, false], [1]],
  [
    "scrape",
    "elements",
    [many(1), many(SCRAPE_SELECTORS_MAX)],
    [[], many(SCRAPE_SELECTORS_MAX + 1)],
  ],
  [
    "scrape",
    "elements/0/selector",
    [],
    [[{ selector: "" }], [{ selector: "a".repeat(SELECTOR_CHARS_MAX + 1) }]],
  ],
  ["scrape", "elements/0", [], [["h1"]]],
  [
    "snapshot",
    "formats",
    [["content"], ["content", "screenshot", "markdown", "accessibilityTree"]],
    [[], ["content", "content"]],
  ],
  ["snapshot", "formats/0", [], [["pdf"]]],
  ["snapshot", "screenshotOptions", [{ type: "jpeg", quality: 1 }], [{ encoding: "base64" }]],
  ["snapshot", "screenshotOptions/quality", [], [{ quality: 1 }]],
  ["snapshot", "viewport", [{ width: 800, height: 600 }], [{ width: 8_000, height: 8_000 }]],
  ["json", "prompt", ["x", "x".repeat(16_384)], ["", "x".repeat(16_385), undefined]],
  [
    "accessibilityTree",
    "root",
    ["a".repeat(SELECTOR_CHARS_MAX)],
    ["", "a".repeat(SELECTOR_CHARS_MAX + 1)],
  ],
  ["accessibilityTree", "interestingOnly", [true], ["no"]],
];

describe("PAGE_CALLS", () => {
  const faultsOf = (name: PageCallName, body: object) => {
    const { error } = PAGE_CALLS[name].request.safeParse(body);
    return error?.issues.map(({ path }) => path.join("/")) ?? [];
  };
  const names = Object.keys(PAGE_CALLS) as PageCallName[];

  it("each takes the parameters of a page, and exactly one of url and html", () => {
    const page = {
      ...{ waitForTimeout: 1, failOnStatus: ["4xx"], scrollPage: true, bestAttempt: true },
      viewport: { width: 800, height: 600 },
      goToOptions: { waitUntil: "load" },
    };
    for (const name of names) {
      const body = { ...page, ...NEEDED[name] };
      expect(faultsOf(name, { ...body, html: "x" }), name).to.deep.equal([]);
      const parsed = PAGE_CALLS[name].request.parse({ ...body, url: "https://example.com" });
      expect(parsed.gotoOptions?.waitUntil, name).to.equal("load");
      // The parsed request is sent over the bus and parsed again, so the schema must accept its own output.
      expect(PAGE_CALLS[name].request.parse(JSON.parse(JSON.stringify(parsed)))).to.deep.equal(
        parsed,
      );
      expect(faultsOf(name, body), name).to.deep.equal(["url"]);
      expect(faultsOf(name, { ...body, html: "x", url: "https://example.com" })).to.include("url");
      expect(faultsOf(name, { ...body, html: "x", pdfOptions: {} })).to.have.length(1);
    }
  });

  for (const [name, path, accepted, refused] of SAMPLES) {
    it(`${name} holds ${path} to its bounds`, () => {
      const [field = ""] = path.split("/");
      const body = { html: "x", ...NEEDED[name] };
      for (const value of accepted) {
        expect(faultsOf(name, { ...body, [field]: value }), JSON.stringify(value)).to.deep.equal(
          [],
        );
      }
      for (const value of refused) {
        expect(faultsOf(name, { ...body, [field]: value }), JSON.stringify(value)).to.include(path);
      }
    });
  }
});
