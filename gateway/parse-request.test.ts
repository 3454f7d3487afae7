import { expect } from "chai";
import { z } from "zod";
import { FAULT_CHARS_MAX, FAULT_TEXT_CHARS_MAX, FAULTS_MAX } from "../schemas/limits.ts";
import { refusal } from "../scripts/testing/refusal.ts";
import { parseRequest } from "./parse-request.ts";

const Body = z.strictObject({ name: z.string(), tags: z.array(z.string()).optional() });

const faultsOf = (value: unknown) =>
  refusal(() => parseRequest(Body, value, "")).details.faults ?? [];

describe("parse-request", () => {
  it("parseRequest() names as many faults as the limit, and no more", () => {
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

  it("parseRequest() repeats a name up to the limit, and of a longer one the beginning", () => {
    const [whole] = faultsOf({ name: "n", ["x".repeat(FAULT_CHARS_MAX - 1)]: 1 });
    expect(whole?.pointer).to.equal(`/${"x".repeat(FAULT_CHARS_MAX - 1)}`);
    const [cut] = faultsOf({ name: "n", ["x".repeat(FAULT_CHARS_MAX)]: 1 });
    expect(cut?.pointer).to.equal(`/${"x".repeat(FAULT_CHARS_MAX - 1)}…`);
    const [huge] = faultsOf({ name: "n", ["~".repeat(40_000_000)]: 1 });
    expect(huge?.pointer).to.have.length(FAULT_CHARS_MAX + 1);
    expect(huge?.message.length).to.be.below(2 * FAULT_CHARS_MAX + 50);
  });

  it("parseRequest() says of one fault no more than the limit", () => {
    const messageOf = (text: string) => {
      const Refusing = z.string().refine(() => false, text);
      return refusal(() => parseRequest(Refusing, "", "")).details.faults?.[0]?.message;
    };
    const longest = "t".repeat(FAULT_TEXT_CHARS_MAX);
    expect(messageOf(longest)).to.equal(`Cannot accept body: ${longest}`);
    expect(messageOf(`${longest}t`)).to.equal(`Cannot accept body: ${longest}…`);
  });

  it("parseRequest() says all of what is valid", () => {
    const [fault] = faultsOf({ name: "n", Name: 1 });
    expect(fault).to.deep.equal({
      pointer: "/Name",
      message: "Cannot accept /Name: Unknown field, expected one of name, tags",
    });
  });
});
