import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "chai";
import { z } from "zod";
import { jsonSchema } from "./openapi-schema.ts";

describe("openapi schema", () => {
  it("jsonSchema() moves null into the type of another option", () => {
    expect(jsonSchema(z.string().nullable(), "output")).to.deep.equal({ type: ["string", "null"] });
  });

  it("jsonSchema() keeps null as an option if the others are constants or lists of values", () => {
    for (const option of [z.literal("x"), z.enum(["x", "y"])]) {
      const schema = jsonSchema(option.nullable(), "output");
      expect(schema.anyOf).to.deep.include({ type: "null" });
      const isValid = new Ajv2020({ strict: false }).compile(schema);
      expect([null, "x", "z"].map((value) => isValid(value))).to.deep.equal([true, true, false]);
    }
    expect(jsonSchema(z.union([z.literal(1), z.string(), z.null()]), "output")).to.deep.equal({
      anyOf: [{ type: "number", const: 1 }, { type: ["string", "null"] }],
    });
  });

  it("jsonSchema() does not make a named schema nullable in all places", () => {
    const page = z.object({ url: z.string() }).meta({ title: "Page" });
    const named = jsonSchema(page, "output");
    expect(jsonSchema(page.nullable(), "output").anyOf).to.deep.equal([named, { type: "null" }]);
  });
});
