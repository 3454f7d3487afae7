import { expect } from "chai";
import { z } from "zod";
import { FAULT_CHARS_MAX, FAULTS_MAX } from "../../schemas/limits.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { FAULT_TEXT_CHARS_MAX, parseRequest } from "./parse-request.ts";

const Body = z.strictObject({ name: z.string(), tags: z.array(z.string()).optional() });

const faultsOf = (value: unknown) =>
  refusal(() => parseRequest(Body, value, "")).details.faults ?? [];

describe("parse-request", () => {
  it("parseRequest() names faults up to the limit", () => {
    const unknown = (count: number) => ({
      name: "n",
      ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 1])),
    });
    const wrong = (count: number) => ({ name: "n", tags: new Array(count).fill(1) });
    for (const body of [unknown, wrong]) {
      expect(faultsOf(body(FAULTS_MAX))).to.have.length(FAULTS_MAX);
      expect(faultsOf(body(FAULTS_MAX + 1))).to.have.length(FAULTS_MAX);
    }
  });

  it("parseRequest() repeats a name up to the limit, and truncates a longer one", () => {
    const [whole] = faultsOf({ name: "n", ["x".repeat(FAULT_CHARS_MAX - 1)]: 1 });
    expect(whole?.pointer).to.equal(`/${"x".repeat(FAULT_CHARS_MAX - 1)}`);
    const [cut] = faultsOf({ name: "n", ["x".repeat(FAULT_CHARS_MAX)]: 1 });
    expect(cut?.pointer).to.equal(`/${"x".repeat(FAULT_CHARS_MAX - 1)}…`);
    const [huge] = faultsOf({ name: "n", ["~".repeat(40_000_000)]: 1 });
    expect(huge?.pointer).to.have.length(FAULT_CHARS_MAX + 1);
    expect(huge?.message.length).to.be.below(2 * FAULT_CHARS_MAX + 50);
  });

  it("parseRequest() limits the length of one fault's text", () => {
    const messageOf = (text: string) => {
      const Refusing = z.string().refine(() => false, text);
      return refusal(() => parseRequest(Refusing, "", "")).details.faults?.[0]?.message;
    };
    const longest = "t".repeat(FAULT_TEXT_CHARS_MAX);
    expect(messageOf(longest)).to.equal(`Cannot accept body: ${longest}`);
    expect(messageOf(`${longest}t`)).to.equal(`Cannot accept body: ${longest}…`);
  });

  it("parseRequest() lists all valid values", () => {
    const [fault] = faultsOf({ name: "n", Name: 1 });
    expect(fault).to.deep.equal({
      pointer: "/Name",
      message: "Cannot accept /Name: Unknown field, expected one of name, tags; is name meant?",
    });
  });

  const Every = z.strictObject({
    name: z.string().min(1).max(100).optional(),
    nickname: z.string().max(20).optional(),
    motto: z.string().min(3).optional(),
    code: z.string().length(4).optional(),
    count: z.int().min(1).max(9).optional(),
    share: z.number().gt(0).max(1).optional(),
    rest: z.number().min(-1).optional(),
    anyNumber: z.int().optional(),
    flag: z.boolean().optional(),
    colour: z.enum(["red", "blue"]).optional(),
    kind: z.literal("page").optional(),
    tags: z.array(z.string().max(5)).min(1).max(2).optional(),
    size: z.strictObject({ width: z.int(), height: z.int() }).optional(),
    email: z.email().optional(),
    since: z.iso.datetime({ offset: true }).optional(),
    path: z.string().startsWith("/").optional(),
    slug: z
      .string()
      .regex(/^[a-z]+$/)
      .optional(),
    step: z.number().multipleOf(5).optional(),
    names: z.record(z.string().max(3), z.int()).optional(),
    either: z.union([z.string().max(5), z.array(z.enum(["a", "b"])).max(2)]).optional(),
    shape: z
      .discriminatedUnion("is", [
        z.object({ is: z.literal("disc") }),
        z.object({ is: z.literal("box") }),
      ])
      .optional(),
    even: z
      .int()
      .refine((value) => value % 2 === 0)
      .optional(),
    gone: z.null().optional(),
    own: z.string({ error: "Expected our own words" }).optional(),
    needed: z.string().min(1).max(8),
  });
  const FAULTS: [object, string, string][] = [
    // Types
    [{ name: 5 }, "/name", "Expected a text of 1 to 100 characters"],
    [{ count: "5" }, "/count", "Expected a whole number from 1 to 9"],
    [{ count: 1.5 }, "/count", "Expected a whole number from 1 to 9"],
    [{ anyNumber: "1" }, "/anyNumber", "Expected a whole number"],
    [{ flag: "true" }, "/flag", "Expected true or false"],
    [
      { tags: "a" },
      "/tags",
      "Expected an array of 1 to 2 items, each a text of at most 5 characters",
    ],
    [{ size: [] }, "/size", "Expected an object with width, height"],
    [{ gone: 0 }, "/gone", "Expected null"],
    [{ names: [] }, "/names", "Expected an object"],
    [{ name: null }, "/name", "Expected a text of 1 to 100 characters"],
    // Bounds
    [{ name: "" }, "/name", "Expected a text of 1 to 100 characters"],
    [{ name: "x".repeat(101) }, "/name", "Expected a text of 1 to 100 characters"],
    [{ nickname: "x".repeat(21) }, "/nickname", "Expected a text of at most 20 characters"],
    [{ motto: "" }, "/motto", "Expected a text of at least 3 characters"],
    [{ code: "abc" }, "/code", "Expected a text of 4 characters"],
    [{ count: 0 }, "/count", "Expected a whole number from 1 to 9"],
    [{ count: 10 }, "/count", "Expected a whole number from 1 to 9"],
    [{ share: 0 }, "/share", "Expected a number above 0 and of at most 1"],
    [{ rest: -1.1 }, "/rest", "Expected a number of at least -1"],
    [
      { tags: ["a", "b", "c"] },
      "/tags",
      "Expected an array of 1 to 2 items, each a text of at most 5 characters",
    ],
    [{ tags: ["a", "123456"] }, "/tags/1", "Expected a text of at most 5 characters"],
    [{ step: 6 }, "/step", "Expected a multiple of 5"],
    // Choices
    [{ colour: "green" }, "/colour", "Expected one of red, blue"],
    [{ kind: "image" }, "/kind", 'Expected "page"'],
    [{ shape: { is: "ball" } }, "/shape/is", "Expected one of disc, box"],
    // Unions: the message describes all alternatives that fit the value's type, or only the intended one.
    [
      { either: 5 },
      "/either",
      "Expected a text of at most 5 characters or an array of at most 2 items, each one of a, b",
    ],
    [{ either: "123456" }, "/either", "Expected a text of at most 5 characters"],
    [{ either: ["c"] }, "/either", "Expected one of a, b"],
    // Formats
    [{ email: "me" }, "/email", "Expected an e-mail address"],
    [{ since: "today" }, "/since", "Expected a time with its zone, as in 2026-11-20T12:00:00Z"],
    [{ path: "a" }, "/path", 'Expected a text that begins with "/"'],
    [{ slug: "A" }, "/slug", "Expected a text that matches /^[a-z]+$/"],
    [{ names: { long: 1 } }, "/names/long", "Expected a text of at most 3 characters"],
    [{ names: { one: "1" } }, "/names/one", "Expected a whole number"],
    // Rules, with and without their own error message.
    [{ even: 3 }, "/even", "Expected a whole number"],
    [{ own: 5 }, "/own", "Expected our own words"],
    // Fields
    [{ needed: undefined }, "/needed", "Missing, expected a text of 1 to 8 characters"],
    [{ size: { width: 1 } }, "/size/height", "Missing, expected a whole number"],
    [
      { size: { width: 1, height: 1, depth: 1 } },
      "/size/depth",
      "Unknown field, expected one of width, height",
    ],
  ];

  for (const [body, pointer, expected] of FAULTS) {
    it(`parseRequest() of ${JSON.stringify(body)}: ${expected}`, () => {
      const { details } = refusal(() => parseRequest(Every, { needed: "n", ...body }, ""));
      const message = `Cannot accept ${pointer}: ${expected}`;
      expect(details.faults).to.deep.equal([{ pointer, message }]);
    });
  }

  it("parseRequest() names the expected type of a body and the value that a query held", () => {
    const Query = z.strictObject({ page: z.coerce.number().pipe(z.int().min(1).max(7)) });
    for (const body of [[], null, "text", 5]) {
      const { details } = refusal(() => parseRequest(Every, body, ""));
      const message = "Cannot accept body: Expected an object with needed";
      expect(details.faults).to.deep.equal([{ pointer: "", message }]);
    }
    for (const [page, expected] of [
      ["abc", 'Expected a number, not "abc"'],
      ["1.5", 'Expected a whole number from 1 to 7, not "1.5"'],
      ["8", 'Expected a whole number from 1 to 7, not "8"'],
    ]) {
      const { details } = refusal(() => parseRequest(Query, { page }, "/query"));
      expect(details.faults?.[0]?.message).to.equal(`Cannot accept /query/page: ${expected}`);
    }
  });
});
