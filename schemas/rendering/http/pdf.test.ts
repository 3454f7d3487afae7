import { expect } from "chai";
import { z } from "zod";
import * as limits from "../../limits.ts";
import { FAILING_STATUSES_MAX } from "../limits.ts";
import { PdfRequest } from "./pdf.ts";

type Sample = [name: string, good: object[], bad: object[], path?: string];
const text = (length: number) => "a".repeat(length);
const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const url = (length: number) => `http://x/${text(length - 9)}`;
const pdf = (options: object) => ({ pdfOptions: options });

/** For each case: the path that errors must name, accepted requests at the limits, and refused requests. */
const SAMPLES: Sample[] = [
  [
    "addStyleTag",
    [{ addStyleTag: many(50, { content: "" }) }],
    [{ addStyleTag: many(51, { content: "" }) }],
  ],
  [
    "addStyleTag/0",
    [{ addStyleTag: [{ url: "http://x" }] }],
    [{ addStyleTag: [{}] }, { addStyleTag: [{ url: "http://x", content: "" }] }],
  ],
  [
    "addScriptTag/0/url",
    [{ addScriptTag: [{ url: "https://x", id: "a", type: "module" }] }],
    [{ addScriptTag: [{ url: "data:,x" }] }],
  ],
  [
    "addStyleTag/0/content",
    [{ addStyleTag: [{ content: text(limits.TAG_CHARS_MAX) }] }],
    [{ addStyleTag: [{ content: text(limits.TAG_CHARS_MAX + 1) }] }],
  ],
  [
    "cookies",
    [{ cookies: many(180, { name: "a", value: "", url: "http://x" }) }],
    [{ cookies: many(181, { name: "a", value: "", url: "http://x" }) }],
  ],
  [
    "cookies/0/domain",
    [{ cookies: [{ name: "a", value: "b", domain: "x" }] }],
    [{ cookies: [{ name: "a", value: "b" }] }],
  ],
  [
    "cookies/0/value",
    [{ cookies: [{ name: "a", value: text(4_095), domain: "x" }] }],
    [
      { cookies: [{ name: "a", value: text(4_096), domain: "x" }] },
      { cookies: [{ name: "a", value: "b;c", domain: "x" }] },
    ],
  ],
  [
    "cookies/0/name",
    [{ cookies: [{ name: "", value: "b", domain: "x" }] }],
    [
      { cookies: [{ name: "a=", value: "b", domain: "x" }] },
      { cookies: [{ name: "", value: "", domain: "x" }] },
    ],
  ],
  [
    "cookies/0/sameSite",
    [
      {
        cookies: [
          {
            name: "a",
            value: "",
            domain: "x",
            sameSite: "Lax",
            priority: "Low",
            sourceScheme: "Unset",
            sourcePort: 65_535,
            sameParty: true,
            partitionKey: "https://x",
          },
        ],
      },
    ],
    [{ cookies: [{ name: "a", value: "", domain: "x", sameSite: "lax" }] }],
  ],
  [
    "setExtraHTTPHeaders",
    [{ setExtraHTTPHeaders: headers(64) }],
    [{ setExtraHTTPHeaders: headers(65) }],
  ],
  ...[
    "Host",
    "connection",
    "Proxy-Authorization",
    "Transfer-Encoding",
    "a b",
    "",
    "ä",
    text(257),
  ].map(
    (name): Sample => [
      `setExtraHTTPHeaders/${name}`,
      [{ setExtraHTTPHeaders: { [text(256)]: "" } }],
      [{ setExtraHTTPHeaders: { [name]: "x" } }],
    ],
  ),
  [
    "setExtraHTTPHeaders/a",
    [{ setExtraHTTPHeaders: { a: text(8_192) } }, { setExtraHTTPHeaders: { a: "a\tb ü" } }],
    [text(8_193), "a\r\nb", " a", "a ", "\u0100"].map((a) => ({ setExtraHTTPHeaders: { a } })),
  ],
  [
    "authenticate/username",
    [{ authenticate: { username: text(1_024), password: "b" } }],
    ["", text(1_025)].map((username) => ({ authenticate: { username, password: "b" } })),
  ],
  [
    "authenticate/password",
    [{ authenticate: { username: "a", password: text(1_024) } }],
    ["", text(1_025), undefined].map((password) => ({ authenticate: { username: "a", password } })),
  ],
  [
    "addScriptTag",
    [{ addScriptTag: many(50, { content: "" }) }, { addScriptTag: [] }],
    [{ addScriptTag: many(51, { content: "" }) }],
  ],
  [
    "addScriptTag/0/content",
    [{ addScriptTag: [{ content: text(limits.TAG_CHARS_MAX) }] }],
    [{ addScriptTag: [{ content: text(limits.TAG_CHARS_MAX + 1) }] }],
  ],
  [
    "viewport/height",
    [1, 10_000].map((height) => ({ viewport: { width: 1, height } })),
    [0, 10_001, 1.5, undefined].map((height) => ({ viewport: { width: 1, height } })),
  ],
  ...["isMobile", "hasTouch", "isLandscape"].map(
    (name): Sample => [
      `viewport/${name}`,
      [{ viewport: { width: 1, height: 1, [name]: true } }],
      [{ viewport: { width: 1, height: 1, [name]: 1 } }],
    ],
  ),
  ...["bestAttempt", "setJavaScriptEnabled"].map(
    (name): Sample => [
      name,
      [{ [name]: true }, { [name]: false }],
      ["true", 1, null].map((value) => ({ [name]: value })),
    ],
  ),
  ...[
    "landscape",
    "printBackground",
    "preferCSSPageSize",
    "displayHeaderFooter",
    "omitBackground",
    "tagged",
    "outline",
  ].map(
    (name): Sample => [
      `pdfOptions/${name}`,
      [pdf({ [name]: true }), pdf({ [name]: false })],
      ["true", 1, null].map((value) => pdf({ [name]: value })),
    ],
  ),
  [
    "gotoOptions/referrerPolicy",
    [{ gotoOptions: { referrerPolicy: "no-referrer" } }],
    ["", "never", "No-Referrer"].map((referrerPolicy) => ({ gotoOptions: { referrerPolicy } })),
  ],
  [
    "gotoOptions/referer",
    [{ gotoOptions: { referer: "http://x" } }],
    ["", "x", "data:,x"].map((referer) => ({ gotoOptions: { referer } })),
  ],
  [
    "allowResourceTypes/0",
    [{ allowResourceTypes: ["websocket", "preflight"] }],
    [{ allowResourceTypes: ["images"] }],
  ],
  [
    "rejectRequestPattern",
    [{ rejectRequestPattern: many(50, "a") }],
    [{ rejectRequestPattern: many(51, "a") }],
  ],
  [
    "allowRequestPattern/0",
    [{ allowRequestPattern: ["/^https:/"] }],
    [{ allowRequestPattern: ["(?<=a)b"] }],
  ],
  [
    "viewport/width",
    [1, 10_000].map((width) => ({ viewport: { width, height: 1 } })),
    [0, 10_001, 1.5].map((width) => ({ viewport: { width, height: 1 } })),
  ],
  [
    "viewport/deviceScaleFactor",
    [0.1, 10].map((deviceScaleFactor) => ({
      viewport: { width: 1, height: 1, deviceScaleFactor },
    })),
    [0.09, 10.1].map((deviceScaleFactor) => ({
      viewport: { width: 1, height: 1, deviceScaleFactor },
    })),
  ],
  [
    "gotoOptions/timeout",
    [1, 60_000].map((timeout) => ({ gotoOptions: { timeout } })),
    [0, 60_001].map((timeout) => ({ gotoOptions: { timeout } })),
  ],
  [
    "gotoOptions/waitUntil",
    [{ gotoOptions: { waitUntil: ["load", "networkidle2"] } }],
    [{ gotoOptions: { waitUntil: [] } }, { gotoOptions: { waitUntil: "idle" } }],
  ],
  ["goToOptions", [{ goToOptions: {} }], [{ gotoOptions: {}, goToOptions: {} }]],
  [
    "waitForSelector/timeout",
    [1, 120_000].map((timeout) => ({ waitForSelector: { selector: "a", timeout } })),
    [0, 120_001].map((timeout) => ({ waitForSelector: { selector: "a", timeout } })),
  ],
  [
    "waitForSelector/selector",
    [{ waitForSelector: { selector: text(4_096) } }],
    ["", text(4_097)].map((selector) => ({ waitForSelector: { selector } })),
  ],
  [
    "waitForSelector/hidden",
    [{ waitForSelector: { selector: "a", hidden: true, visible: false } }],
    [{ waitForSelector: { selector: "a", hidden: true, visible: true } }],
  ],
  [
    "waitForTimeout",
    [{ waitForTimeout: 0 }, { waitForTimeout: 120_000 }],
    [{ waitForTimeout: -1 }, { waitForTimeout: 120_001 }],
  ],
  [
    "actionTimeout",
    [{ actionTimeout: 1 }, { actionTimeout: 120_000 }],
    [{ actionTimeout: 0 }, { actionTimeout: 120_001 }],
  ],
  ["emulateMediaType", [{ emulateMediaType: "screen" }], [{ emulateMediaType: "tv" }]],
  [
    "rejectResourceTypes/0",
    [{ rejectResourceTypes: ["image"] }],
    [{ rejectResourceTypes: ["Image"] }],
  ],
  [
    "allowRequestPattern",
    [{ allowRequestPattern: many(50, "a") }],
    [{ allowRequestPattern: many(51, "a") }],
  ],
  [
    "rejectRequestPattern/0",
    [text(1_024), "/^.*\\.(css)", "/a/gi", "a/b", "/api/users", "\\d+"].map((one) => ({
      rejectRequestPattern: [one],
    })),
    ["", text(1_025), "(", "(?=a)", "(a)\\1", "((a{30}){30}){9}"].map((one) => ({
      rejectRequestPattern: [one],
    })),
  ],
  [
    "setExtraHTTPHeaders/User-Agent",
    [
      { setExtraHTTPHeaders: { "User-Agent": text(1_024) } },
      { userAgent: "x", setExtraHTTPHeaders: { a: "b" } },
    ],
    [
      { setExtraHTTPHeaders: { "User-Agent": text(1_025) } },
      { setExtraHTTPHeaders: { "User-Agent": "" } },
      { userAgent: "x", setExtraHTTPHeaders: { "User-Agent": "x" } },
    ],
  ],
  [
    "setExtraHTTPHeaders/Referer",
    [{ setExtraHTTPHeaders: { Cookie: "a=b", Origin: "https://x" } }],
    [{ setExtraHTTPHeaders: { Referer: "https://x" } }],
  ],
  [
    "setExtraHTTPHeaders/set-cookie",
    [{ cookies: [{ name: "a", value: "b", url: "http://x" }] }],
    [{ setExtraHTTPHeaders: { "set-cookie": "a=b" } }],
  ],
  [
    "failOnStatus",
    [{ failOnStatus: [400, 599, "4xx", "5xx"] }, { failOnStatus: many(FAILING_STATUSES_MAX, 404) }],
    [{ failOnStatus: [] }, { failOnStatus: many(FAILING_STATUSES_MAX + 1, 404) }],
  ],
  [
    "failOnStatus/0",
    [{ failOnStatus: [404] }],
    [399, 600, 404.5, "404", "3xx"].map((status) => ({ failOnStatus: [status] })),
  ],
  ["scrollPage", [{ scrollPage: true }], [{ scrollPage: 1 }]],
  [
    "userAgent",
    [{ userAgent: text(1_024) }],
    [{ userAgent: "" }, { userAgent: text(1_025) }, { userAgent: "a\nb" }],
  ],
  [
    "pdfOptions/format",
    ["letter", "legal", "tabloid", "LEDGER", "a0", "A1", "a2", "A3", "A4", "a5", "A6"].map(
      (format) => pdf({ format }),
    ),
    ["a7", "", "toString"].map((format) => pdf({ format })),
  ],
  [
    "pdfOptions/scale",
    [pdf({ scale: 0.1 }), pdf({ scale: 2 })],
    [pdf({ scale: 0.09 }), pdf({ scale: 2.01 })],
  ],
  [
    "pdfOptions/timeout",
    [pdf({ timeout: 1 }), pdf({ timeout: 300_000 })],
    [pdf({ timeout: 0 }), pdf({ timeout: 300_001 })],
  ],
  [
    "pdfOptions/width",
    [1, "200in", "5080mm", "1.5CM", "10", ".5in"].map((width) => pdf({ width })),
    [-1, "200.1in", "1pt", "wide", "", "-1in"].map((width) => pdf({ width })),
  ],
  [
    "pdfOptions/margin",
    [pdf({ margin: { left: "8.49in" } }), pdf({ landscape: true, margin: { left: "10in" } })],
    [
      pdf({ margin: { left: "4in", right: "4.5in" } }),
      pdf({ landscape: true, margin: { top: "8.5in" } }),
      pdf({ width: 0 }),
    ],
  ],
  ...["top", "right", "bottom", "left"].map(
    (side): Sample => [
      `pdfOptions/margin/${side}`,
      [0, 96, "96px", "1in", "2.54cm", "25.4mm", "0"].map((length) =>
        pdf({ margin: { [side]: length } }),
      ),
      [-1, "-1px", "1pt", "1em", "10%", "", null, 200 * 96 + 1].map((length) =>
        pdf({ margin: { [side]: length } }),
      ),
    ],
  ),
  [
    "pdfOptions/height",
    [1, "200in", "5080mm"].map((height) => pdf({ height })),
    [-1, "200.1in", "tall"].map((height) => pdf({ height })),
  ],
  [
    "pdfOptions/footerTemplate",
    [pdf({ footerTemplate: text(500_000) })],
    [text(500_001), '<style>@import "http://x/a.css"</style>'].map((footerTemplate) =>
      pdf({ footerTemplate }),
    ),
  ],
  [
    "pdfOptions/pageRanges",
    ["", "1", "1-3, 5", " 2 - ", "-2", "-", "3-3"].map((pageRanges) => pdf({ pageRanges })),
    ["0", "3-2", "a", "1,,2", "1-2-3", "0-1", "-0", "1234567890"].map((pageRanges) =>
      pdf({ pageRanges }),
    ),
  ],
  [
    "pdfOptions/headerTemplate",
    [
      text(500_000),
      '<style>@import url("data:text/css,b{}"); @IMPORT data:text/css,b{}</style>',
      '<link rel="icon" href="http://x"><link rel=stylesheet href=data:text/css,b{}>',
      "<link<".repeat(80_000),
    ].map((headerTemplate) => pdf({ headerTemplate })),
    [
      text(500_001),
      '<style>@import "http://x/a.css"</style>',
      "<style>@import url( //x )</style>",
      '<LINK rel="stylesheet" href="http://x/a.css">',
      "@import".repeat(70_000),
    ].map((headerTemplate) => pdf({ headerTemplate })),
  ],
];

describe("PdfRequest", () => {
  for (const [path, good, bad] of SAMPLES) {
    it(`parse() enforces the bounds of ${path.slice(0, 60)}`, () => {
      for (const sample of good) expect(faultsOf({ html: "x", ...sample })).to.deep.equal([]);
      for (const sample of bad) {
        const faults = faultsOf({ html: "x", ...sample });
        expect(faults, JSON.stringify(sample).slice(0, 200)).to.not.have.length(0);
        for (const fault of faults) expect(fault).to.match(new RegExp(`^${escaped(path)}(/|$)`));
      }
    });
  }

  it("parse() accepts exactly one of url and html, and http and https only", () => {
    expect(faultsOf({})).to.deep.equal(["url"]);
    expect(faultsOf({ url: "http://x", html: "x" })).to.deep.equal(["url"]);
    expect(faultsOf({ html: "" })).to.include("html");
    expect(faultsOf({ url: url(limits.URL_CHARS_MAX) })).to.deep.equal([]);
    expect(faultsOf({ url: url(limits.URL_CHARS_MAX + 1) })).to.deep.equal(["url"]);
    for (const bad of [
      "x",
      "//x",
      "file:///etc/passwd",
      "data:,x",
      "javascript:1",
      "http://",
      "view-source:http://x",
    ]) {
      expect(faultsOf({ url: bad }), bad).to.deep.equal(["url"]);
    }
  });

  it("parse() has one message for a misspelt source, and another for two sources", () => {
    expect(faultsOf({ htm: "x" })).to.deep.equal([""]);
    expect(faultsOf({ url: "http://x", html: "x", htm: "x" })).to.deep.equal(["", "url"]);
    expect(faultsOf({ pdfOptions: { htm: "x" } })).to.include("url");
  });

  it("parse() shows the expected shape by an example", () => {
    const messages: [object, RegExp][] = [
      [{ waitForSelector: "#foo" }, /as in \{"selector":"#ready"\}/],
      [pdf({ margin: "2cm" }), /as in \{"top":"2cm","left":"1in"\}/],
    ];
    for (const [sample, message] of messages) {
      const { error } = PdfRequest.safeParse({ html: "x", ...sample });
      expect(error?.issues.map((issue) => issue.message).join()).to.match(message);
    }
  });

  it("parse() lists the load events once", () => {
    for (const waitUntil of ["idle", ["idle"], 5]) {
      const { error } = PdfRequest.safeParse({ html: "x", gotoOptions: { waitUntil } });
      expect(error?.issues).to.have.length(1);
      expect(error?.issues[0]?.message.match(/networkidle0/g)).to.have.length(1);
    }
  });

  it("parse() bounds html in bytes", () => {
    const half = limits.HTML_BYTES_MAX / 2;
    expect(faultsOf({ html: "é".repeat(half) })).to.deep.equal([]);
    expect(faultsOf({ html: `${"é".repeat(half)}a` })).to.deep.equal(["html"]);
  });

  it("parse() refuses names it does not know, at every depth", () => {
    for (const unknown of [
      { unknown: 1 },
      pdf({ path: "/x" }),
      { gotoOptions: { unknown: 1 } },
      { viewport: { width: 1, height: 1, x: 1 } },
    ]) {
      expect(PdfRequest.safeParse({ html: "x", ...unknown }).error?.issues[0]?.code).to.equal(
        "unrecognized_keys",
      );
    }
  });

  it("parse() returns a normalized form with defaults that parses to itself", () => {
    const request = PdfRequest.parse({
      url: "http://x",
      goToOptions: { waitUntil: "load" },
      pdfOptions: {},
    });
    expect(request).to.deep.equal({
      url: "http://x",
      gotoOptions: { waitUntil: "load", timeout: 30_000, settleTimeout: 2_000 },
      pdfOptions: { timeout: 30_000 },
    });
    expect(PdfRequest.parse(JSON.parse(JSON.stringify(request)))).to.deep.equal(request);
  });

  it("parse() reads the browser's name from an added header in any case", () => {
    const setExtraHTTPHeaders = { "USER-agent": "Named/1", a: "b" };
    const request = PdfRequest.parse({ html: "x", setExtraHTTPHeaders });
    expect(request).to.deep.equal({
      html: "x",
      userAgent: "Named/1",
      setExtraHTTPHeaders: { a: "b" },
    });
    expect(PdfRequest.parse(request)).to.deep.equal(request);
  });

  it("toJSONSchema() describes what a client may send", () => {
    const schema = z.toJSONSchema(PdfRequest, { io: "input" });
    expect(schema.additionalProperties).to.equal(false);
    expect(Object.keys(schema.properties ?? {})).to.include.members([
      "url",
      "html",
      "goToOptions",
      "pdfOptions",
    ]);
  });
});

function headers(count: number) {
  return Object.fromEntries(many(count, "x").map((value, index) => [`a${index}`, value]));
}

function faultsOf(request: object): string[] {
  const { error } = PdfRequest.safeParse(request);
  return error?.issues.map(({ path }) => path.join("/")) ?? [];
}

function escaped(path: string): string {
  return path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
