import { expect } from "chai";
import { parameterCount } from "./sql-parameters.ts";

describe("parameterCount()", () => {
  for (const [sql, count] of [
    ["SELECT 1", 0],
    ["SELECT ?, ?", 2],
    ["SELECT ?1 + ?1", 1],
    ["SELECT ?3, ?", 4],
    ["SELECT '?', 'it''s ?', x'00', ?", 1],
    [`SELECT 1 AS "a ""?", 2 AS \`b?\`, 3 AS [c:d?], ?`, 1],
    ["SELECT ? -- ? :a 'b\n, ? /* ? 'c */, ? /* ?", 3],
    ["SELECT a$b, ä$, json('{}')->>'$.a', 1e5, b?1", 1],
    [`SELECT '${"a''?".repeat(100_000)}', ?`, 1],
  ] as const) {
    it(`is ${count} of ${JSON.stringify(sql.slice(0, 50))}`, () => {
      expect(parameterCount(sql)).to.equal(count);
    });
  }

  for (const name of [":a", "@a", "$a", ":1"]) {
    it(`refuses ${name}`, () => {
      const text = `Cannot bind ${name}: values have no names here, expected ?`;
      expect(() => parameterCount(`SELECT ${name}`)).to.throw(TypeError, text);
    });
  }
});
