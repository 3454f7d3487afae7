import { expect } from "chai";
import { z } from "zod";
import * as bounds from "../limits.ts";
import { CrawlRequest } from "./crawl.ts";

type Sample = [name: string, good: object[], bad: object[]];
const text = (length: number) => "a".repeat(length);
const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const json = (options: object) => ({ formats: ["json"], jsonOptions: { prompt: "x", ...options } });
const format = (given: object) => json({ response_format: { type: "json_schema", ...given } });
const schema = (json_schema: unknown) => format({ json_schema });
const model = (given: object) =>
  json({ custom_ai: [{ model: "openai/gpt-5", authorization: "Bearer x", ...given }] });
/** Returns a schema of this size. */
const schemaOf = (bytes: number) => ({ $comment: text(bytes - 15) });

/** Samples of each field: the path of the expected error, values at the field's bounds, and values beyond them. */
const SAMPLES: Sample[] = [
  [
    "limit",
    [{ limit: 1 }, { limit: 100_000 }],
    [0, 100_001, 1.5, "10", null].map((limit) => ({ limit })),
  ],
  [
    "depth",
    [{ depth: 0 }, { depth: 100_000 }],
    [-1, 100_001, 0.5, "1"].map((depth) => ({ depth })),
  ],
  [
    "source",
    ["all", "sitemaps", "links"].map((source) => ({ source })),
    [{ source: "sitemap" }, { source: "" }],
  ],
  [
    "formats",
    [{ formats: ["html"] }, { formats: ["markdown", "html"] }],
    [
      { formats: [] },
      { formats: ["html", "html"] },
      { formats: ["text"] },
      { formats: "html" },
      { formats: ["html", "markdown", "html", "markdown"] },
    ],
  ],
  ["render", [{ render: true }, { render: false }], [{ render: "false" }, { render: 0 }]],
  [
    "maxAge",
    [{ maxAge: 0 }, { maxAge: 604_800 }],
    [{ maxAge: -1 }, { maxAge: 604_801 }, { maxAge: 0.5 }],
  ],
  [
    "modifiedSince",
    [{ modifiedSince: 0 }, { modifiedSince: 253_402_300_799 }],
    [{ modifiedSince: -1 }, { modifiedSince: 253_402_300_800 }, { modifiedSince: "2026-01-01" }],
  ],
  [
    "options",
    [{ options: {} }, { options: { includeExternalLinks: true, includeSubdomains: false } }],
    [{ options: [] }, { options: "x" }, { options: { includeSubdomains: "yes" } }],
  ],
  ...["includePatterns", "excludePatterns"].flatMap((name): Sample[] => [
    [
      `options/${name}`,
      [{ options: { [name]: [] } }, { options: { [name]: many(100, "*") } }],
      [{ options: { [name]: many(101, "*") } }, { options: { [name]: "*" } }],
    ],
    [
      `options/${name}/0`,
      [{ options: { [name]: [text(1_024)] } }],
      [{ options: { [name]: [text(1_025)] } }, { options: { [name]: [""] } }],
    ],
  ]),
  [
    "crawlPurposes",
    [{ crawlPurposes: ["search"] }, { crawlPurposes: ["ai-train", "ai-input", "search"] }],
    [
      { crawlPurposes: [] },
      { crawlPurposes: ["search", "search"] },
      { crawlPurposes: ["training"] },
      { crawlPurposes: ["search", "ai-input", "ai-train", "search"] },
    ],
  ],
  [
    "contentUse",
    [{ contentUse: "reference" }, { contentUse: "full" }],
    [{ contentUse: "immediate" }, { contentUse: true }],
  ],
  [
    "jsonOptions",
    [json({}), { ...json({}), formats: ["html", "json"] }],
    [
      { formats: ["json"] },
      { formats: ["html"], jsonOptions: { prompt: "x" } },
      { formats: ["json"], jsonOptions: {} },
      { formats: ["json"], jsonOptions: { custom_ai: [] } },
      { formats: ["json"], jsonOptions: "names" },
    ],
  ],
  [
    "jsonOptions/prompt",
    [json({ prompt: text(bounds.JSON_PROMPT_CHARS_MAX) })],
    [json({ prompt: text(bounds.JSON_PROMPT_CHARS_MAX + 1) }), json({ prompt: "" })],
  ],
  [
    "jsonOptions/response_format",
    [
      schema({}),
      format({ schema: {} }),
      format({}),
      format({ json_schema: null }),
      format({ json_schema: null, schema: {} }),
    ],
    [format({ schema: {}, json_schema: {} }), json({ response_format: "json" })],
  ],
  [
    "jsonOptions/response_format/type",
    [schema({ type: "object" })],
    [json({ response_format: { type: "json_object", json_schema: {} } })],
  ],
  [
    "jsonOptions/response_format/json_schema",
    [
      schema(schemaOf(bounds.JSON_SCHEMA_BYTES_MAX)),
      schema({ type: ["string", "null"] }),
      schema({ properties: { a: true, b: { anyOf: ["string", { type: "null" }] } } }),
    ],
    [
      schema(schemaOf(bounds.JSON_SCHEMA_BYTES_MAX + 1)),
      schema([]),
      schema("string"),
      schema({ type: "text" }),
      schema({ type: [] }),
      schema({ properties: [] }),
      schema({ properties: { a: "text" } }),
      schema({ properties: { a: 1 } }),
      schema({ anyOf: {} }),
      schema({ required: true }),
    ],
  ],
  [
    "jsonOptions/custom_ai",
    [json({ custom_ai: many(10, { model: "openai/b", authorization: "c" }) })],
    [
      json({ custom_ai: [] }),
      json({ custom_ai: many(11, { model: "openai/b", authorization: "c" }) }),
    ],
  ],
  [
    "jsonOptions/custom_ai/0/model",
    [model({}), model({ model: `xai/${text(252)}` }), model({ model: "groq/@cf/b" })],
    ["", "gpt-5", "/gpt-5", "openai/", "a b/c", "nobody/gpt-5", `xai/${text(253)}`].map((name) =>
      model({ model: name }),
    ),
  ],
  [
    "jsonOptions/custom_ai/0/authorization",
    [model({ authorization: text(8_192) }), json({ custom_ai: [{ model: "openai/b" }] })],
    [
      model({ authorization: text(8_193) }),
      model({ authorization: "" }),
      model({ authorization: "a\nb" }),
    ],
  ],
  [
    "setExtraHTTPHeaders/Referer",
    [{ render: false, setExtraHTTPHeaders: { Referer: "https://x" } }],
    [{ setExtraHTTPHeaders: { Referer: "https://x" } }],
  ],
  [
    "setExtraHTTPHeaders/user-agent",
    [{ setExtraHTTPHeaders: { "x-agent": "x" } }],
    [{ setExtraHTTPHeaders: { "user-agent": "x" } }],
  ],
  ["userAgent", [], [{ userAgent: "Mozilla/5.0" }, { userAgent: "" }, { userAgent: null }]],
  ["goToOptions", [{ goToOptions: {} }], [{ goToOptions: {}, gotoOptions: {} }]],
  ["viewport/width", [], [{ viewport: { width: 0, height: 1 } }]],
];

/** A valid value of each page parameter. */
const BROWSER_SAMPLES = {
  addStyleTag: [],
  addScriptTag: [],
  viewport: { width: 800, height: 600 },
  gotoOptions: {},
  goToOptions: {},
  waitForSelector: { selector: "a" },
  waitForTimeout: 0,
  actionTimeout: 1,
  bestAttempt: false,
  emulateMediaType: "print",
  setJavaScriptEnabled: true,
  rejectResourceTypes: [],
  rejectRequestPattern: [],
  allowResourceTypes: [],
  allowRequestPattern: [],
};
const FETCH_SAMPLES = {
  authenticate: { username: "a", password: "b" },
  setExtraHTTPHeaders: { a: "b" },
  cookies: [{ name: "a", value: "b" }],
};

describe("CrawlRequest", () => {
  for (const [path, good, bad] of SAMPLES) {
    it(`parse() enforces the bounds of ${path}`, () => {
      for (const sample of good)
        expect(faultsOf(sample), JSON.stringify(sample).slice(0, 200)).to.deep.equal([]);
      for (const sample of bad) {
        const faults = faultsOf(sample);
        expect(faults, JSON.stringify(sample).slice(0, 200)).to.not.have.length(0);
        for (const fault of faults)
          expect(`${fault}/`).to.satisfy((at: string) => at.startsWith(`${path}/`));
      }
    });
  }

  it("parse() requires a URL of http or https, and refuses html", () => {
    for (const url of [undefined, null, "", "x", "//x", "ftp://x/", "file:///etc", "http://"]) {
      expect(faultsOf({ url }), String(url)).to.deep.equal(["url"]);
    }
    expect(
      CrawlRequest.safeParse({ url: "http://x/", html: "x" }).error?.issues[0],
    ).to.deep.include({
      code: "unrecognized_keys",
      keys: ["html"],
    });
  });

  it("parse() writes the URL as WHATWG does, without fragment", () => {
    const url = "HTTP://EXAMPLE.com:80/a/../b c?q=ü#top";
    expect(CrawlRequest.parse({ url }).url).to.equal("http://example.com/b%20c?q=%C3%BC");
    expect(CrawlRequest.parse({ url: "https://a.example.:8443/b." }).url).to.equal(
      "https://a.example:8443/b.",
    );
    expect(CrawlRequest.parse({ url: "https://bücher.example" }).url).to.equal(
      "https://xn--bcher-kva.example/",
    );
  });

  it("parse() limits the length of the normalized URL", () => {
    const longest = bounds.CRAWL_URL_CHARS_MAX - "http://x/".length;
    expect(faultsOf({ url: `http://x/${text(longest)}` })).to.deep.equal([]);
    expect(faultsOf({ url: `http://x/${text(longest + 1)}` })).to.deep.equal(["url"]);
    expect(faultsOf({ url: `http://x/${"ü".repeat(longest / 2)}` })).to.deep.equal(["url"]);
    expect(faultsOf({ url: `http://x/${text(longest)}#${text(100)}` })).to.deep.equal([]);
    const host = (length: number) => `http://${text(length)}/`;
    expect(faultsOf({ url: host(bounds.HOST_KEY_CHARS_MAX) })).to.deep.equal([]);
    expect(faultsOf({ url: host(bounds.HOST_KEY_CHARS_MAX + 1) })).to.deep.equal(["url"]);
  });

  it("parse() refuses a user name in the URL and names authenticate", () => {
    for (const url of ["http://a:b@x/", "http://a@x/", "http://:b@x/"]) {
      expect(messagesOf({ url })).to.match(/authenticate/);
    }
  });

  it("parse() refuses another user agent because the crawler's name is fixed", () => {
    expect(messagesOf({ userAgent: "x" })).to.equal(
      "The crawler's name is fixed: VendorBrowserRenderingCrawler/1.0, expected no userAgent",
    );
  });

  it("parse() refuses without a browser each parameter that needs one", () => {
    for (const [field, value] of Object.entries(BROWSER_SAMPLES)) {
      expect(faultsOf({ [field]: value }), field).to.deep.equal([]);
      expect(faultsOf({ render: false, [field]: value }), field).to.deep.equal([field]);
    }
    const { goToOptions: _, ...each } = BROWSER_SAMPLES;
    expect(faultsOf({ render: false, ...each })).to.have.members(Object.keys(each));
    expect(faultsOf({ render: false, ...FETCH_SAMPLES })).to.deep.equal([]);
  });

  it("parse() refuses names it does not know, at every depth", () => {
    for (const unknown of [
      { unknown: 1 },
      { options: { includePattern: [] } },
      { gotoOptions: { unknown: 1 } },
      json({ schema: {} }),
      format({ json_schema: {}, strict: true }),
      model({ key: "x" }),
    ]) {
      const { error } = CrawlRequest.safeParse({ url: "http://x", ...unknown });
      expect(error?.issues[0]?.code, JSON.stringify(unknown)).to.equal("unrecognized_keys");
    }
  });

  it("parse() fills in defaults", () => {
    expect(CrawlRequest.parse({ url: "http://x" })).to.deep.equal({
      url: "http://x/",
      limit: 10,
      depth: 100_000,
      source: "all",
      formats: ["html"],
      render: true,
      maxAge: 86_400,
      options: {},
      crawlPurposes: ["search", "ai-input", "ai-train"],
    });
  });

  it("parse() expands shorthand schemas", () => {
    const whole: [object, object][] = [
      [
        { name: "product", properties: { name: "string", price: "number" } },
        {
          title: "product",
          type: "object",
          properties: { name: { type: "string" }, price: { type: "number" } },
        },
      ],
      [
        { title: "string", tags: ["string"] },
        {
          type: "object",
          properties: {
            title: { type: "string" },
            tags: { type: "array", items: { type: "string" } },
          },
        },
      ],
      [
        { properties: { links: "string[]", by: { properties: { name: "string" } } } },
        {
          type: "object",
          properties: {
            links: { type: "array", items: { type: "string" } },
            by: { type: "object", properties: { name: { type: "string" } } },
          },
        },
      ],
      [
        { name: "x", strict: true, schema: { items: "integer" } },
        { type: "array", items: { type: "integer" } },
      ],
      [{}, {}],
      [{ enum: ["a", "b"] }, { enum: ["a", "b"] }],
      [
        { oneOf: ["string", { $ref: "#/$defs/a" }], $defs: { a: "null" } },
        {
          oneOf: [{ type: "string" }, { $ref: "#/$defs/a" }],
          $defs: { a: { type: "null" } },
        },
      ],
    ];
    for (const [given, expected] of whole) {
      const { jsonOptions } = CrawlRequest.parse({ url: "http://x", ...schema(given) });
      expect(jsonOptions?.response_format?.json_schema).to.deep.equal(expected);
    }
  });

  it("parse() takes a format without a schema, or with null, for any object", () => {
    for (const given of [{}, { json_schema: null }, { schema: null }]) {
      const { jsonOptions } = CrawlRequest.parse({ url: "http://x", ...format(given) });
      expect(jsonOptions?.response_format?.json_schema).to.deep.equal({ type: "object" });
    }
  });

  it("parse() keeps a complete schema unchanged", () => {
    const whole = {
      type: "object",
      title: "Product",
      required: ["name"],
      additionalProperties: false,
      properties: { name: { type: "string", minLength: 1 }, type: { type: "string" } },
    };
    const { jsonOptions } = CrawlRequest.parse({ url: "http://x", ...schema(whole) });
    expect(jsonOptions?.response_format?.json_schema).to.deep.equal(whole);
  });

  it("parse() of its own stored result returns the same", () => {
    const { gotoOptions: _, ...browser } = BROWSER_SAMPLES;
    for (const given of [
      {},
      { ...browser, ...FETCH_SAMPLES },
      { ...model({}), ...schema({ name: "a", properties: { a: "string[]" } }) },
      { ...format({ schema: { a: "string" } }), options: { includePatterns: ["*"] } },
      { url: "http://EXAMPLE.com/a b#c", modifiedSince: 1, contentUse: "full", render: false },
    ]) {
      const request = CrawlRequest.parse({ url: "http://x", ...given });
      expect(CrawlRequest.parse(JSON.parse(JSON.stringify(request)))).to.deep.equal(request);
      expect(request).to.not.have.any.keys("goToOptions", "userAgent");
    }
  });

  it("toJSONSchema() describes each field a client may send", () => {
    const {
      properties = {},
      required,
      additionalProperties,
    } = z.toJSONSchema(CrawlRequest, {
      io: "input",
    });
    expect(additionalProperties).to.equal(false);
    expect(required).to.deep.equal(["url"]);
    for (const [name, property] of Object.entries(properties)) {
      expect(property, name).to.have.property("description").that.is.a("string");
    }
    expect(properties.limit).to.deep.include({ default: 10, maximum: 100_000 });
  });
});

function faultsOf(request: object): string[] {
  const { error } = CrawlRequest.safeParse({ url: "http://x", ...request });
  return error?.issues.map(({ path }) => path.join("/")) ?? [];
}

function messagesOf(request: object): string {
  const { error } = CrawlRequest.safeParse({ url: "http://x", ...request });
  return error?.issues.map(({ message }) => message).join("; ") ?? "";
}
