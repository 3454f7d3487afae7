import { expect } from "chai";
import { z } from "zod";
import { ActorError, ERRORS, type ErrorCode } from "../../../schemas/errors.ts";
import { FAULTS_MAX, MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { decodeRefusal, encodeRefusal, InvalidInput, refusalOf } from "./refusal.ts";

describe("refusalOf()", () => {
  it("tells refusals from faults", () => {
    const refused = new ActorError("conflict", "Cannot: it is so");
    expect(refusalOf(refused)).to.equal(refused);
    expect(refusalOf(invalid(z.string(), 1))?.code).to.equal("invalid_request");
    for (const fault of [new Error("x"), new z.ZodError([]), "text", undefined, null]) {
      expect(refusalOf(fault)).to.equal(undefined);
    }
  });
});

describe("encodeRefusal()", () => {
  it("decodeRefusal() restores every code, with message and details", () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const details = { retryAfterS: 3, browserMs: 4, faults: [{ pointer: "/a", message: "é" }] };
      const { headers: built, payload } = encodeRefusal(
        new ActorError(code, "Cannot é: so", details),
      );
      expect(built.get("Nats-Service-Error-Code")).to.equal(String(ERRORS[code].status));
      expect(built.get("Nats-Service-Error")).to.equal("Cannot é: so");
      const decoded = decodeRefusal(payload);
      expect(decoded).to.be.instanceOf(ActorError);
      expect({ ...decoded, message: decoded.message }).to.deep.include({
        code,
        message: "Cannot é: so",
        details,
      });
    }
  });

  it("keeps a message of several lines", () => {
    const { headers: built, payload } = encodeRefusal(new ActorError("conflict", "a\r\n\nb"));
    expect(built.get("Nats-Service-Error")).to.equal("a b");
    expect(decodeRefusal(payload).message).to.equal("a\r\n\nb");
  });

  it("decodeRefusal() turns an unknown code into an internal error", () => {
    for (const code of ["from_the_future", "constructor", "__proto__"]) {
      expect(decodeRefusal(JSON.stringify({ code, message: "m" })).code).to.equal("internal_error");
    }
  });
});

describe("InvalidInput", () => {
  it("names every fault by its JSON pointer (RFC 6901)", () => {
    const schema = z.object({ list: z.array(z.int()), byName: z.record(z.string(), z.int()) });
    const { refusal } = invalid(schema, { list: [1, "x"], byName: { "a/b~c": "y" } });
    expect(refusal.details.faults?.map(({ pointer }) => pointer)).to.deep.equal([
      "/list/1",
      "/byName/a~1b~0c",
    ]);
    expect(refusal.message).to.match(/^Cannot read greet: \/list\/1: /);
    // The pointer of the whole document is empty.
    expect(invalid(z.object({}), 1).refusal.details.faults?.[0]?.pointer).to.equal("");
  });

  it("names at most FAULTS_MAX faults", () => {
    const list = Array.from({ length: FAULTS_MAX + 1 }, () => "x");
    expect(invalid(z.array(z.int()), list.slice(1)).refusal.details.faults).to.have.length(
      FAULTS_MAX,
    );
    expect(invalid(z.array(z.int()), list).refusal.details.faults).to.have.length(FAULTS_MAX);
  });

  it("stays small when the faulty input is as large as a message may be", () => {
    const name = "x".repeat(MESSAGE_BYTES_MAX - 100);
    const { refusal } = invalid(z.strictObject({}), { [name]: 1 });
    const { headers: built, payload } = encodeRefusal(refusal);
    expect(payload.length + built.get("Nats-Service-Error").length).to.be.below(20_000);
    const deep = invalid(z.record(z.string(), z.int()), { [name]: "x" });
    expect(encodeRefusal(deep.refusal).payload.length).to.be.below(20_000);
  });
});

function invalid(schema: z.ZodType, input: unknown): InvalidInput {
  const { error } = schema.safeParse(input);
  if (!error) throw new Error("the input is valid");
  return new InvalidInput("greet", error);
}
