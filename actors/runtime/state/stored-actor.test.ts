import { expect } from "chai";
import { z } from "zod";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { RememberedReplies } from "../calls/remembered-replies.ts";
import type { AnyActorDefinition } from "../kinds/define-actor.ts";
import { deepFreeze } from "../lib/deep-freeze.ts";
import { decodeActor, decodeRow, encodeActor, rowMarkOf } from "./stored-actor.ts";

const definition: AnyActorDefinition = counterActor;
const noRows = new Map<string, string>();

describe("decodeActor()", () => {
  it("reads the values of every earlier version", () => {
    const values = [
      // A value of 0.1.0 from the time when only the state was stored.
      '{"state":{"count":3}}',
      '{"state":{"count":3},"mail":17}',
      '{"state":{"count":3},"mail":17,"reminders":{"tick":1800000000000}}',
      '{"state":{"count":3},"mail":17,"reminders":{"tick":1800000000000},"replies":{"c0ffee":{"settled":4,"lastAt":1800000000000,"replies":{"4":{"count":3}}}}}',
      // A newer version may have written fields this one does not know.
      '{"state":{"count":3},"mail":17,"later":true}',
    ];
    for (const value of values) {
      const actor = decodeActor(definition, value, noRows);
      expect(actor.state).to.deep.equal({ count: 3 });
      expect(actor.mail).to.equal(value.includes("mail") ? 17 : 0);
      expect(actor.reminders.get("tick")).to.equal(
        value.includes("tick") ? 1_800_000_000_000 : undefined,
      );
      expect(actor.replies.find({ client: "c0ffee", number: 4, settled: 4 })).to.deep.equal(
        value.includes("c0ffee") ? { reply: '{"count":3}' } : undefined,
      );
    }
  });

  it("gives an unwritten key its initial state", () => {
    const actor = decodeActor(definition, undefined, noRows);
    expect(actor).to.deep.include({ state: { count: 0 }, mail: 0, rows: new Map() });
  });

  it("restores what encodeActor() wrote, and rows as they are stored", () => {
    const replies = new RememberedReplies();
    replies.remember({ client: "c", number: 1, settled: 1 }, '{"count":1}', 5);
    const text = encodeActor(definition, "counter.a", {
      life: "living",
      state: { count: 9, padding: 'é"\\\n' },
      mail: 4,
      reminders: new Map([["tick", 12]]),
      replies,
      rowMark: 3,
    });
    expect(rowMarkOf(text ?? "")).to.equal(3);
    const rows = new Map([["a.b c", decodeRow(definition, "5")]]);
    const actor = decodeActor(definition, text, rows);
    expect(actor.state).to.deep.equal({ count: 9, padding: 'é"\\\n' });
    expect(actor.mail).to.equal(4);
    expect([...actor.reminders]).to.deep.equal([["tick", 12]]);
    expect([...actor.rows]).to.deep.equal([["a.b c", 5]]);
    expect(encodeActor(definition, "counter.a", actor)).to.equal(text);
  });

  it("refuses bytes of another shape in state, rows and their envelope", () => {
    for (const value of [
      "",
      "{",
      "[]",
      '{"state":{"count":"x"}}',
      '{"state":{"count":1},"mail":"x"}',
    ]) {
      expect(() => decodeActor(definition, value, noRows), value).to.throw();
    }
    for (const text of ["", '"x"', "5,"])
      expect(() => decodeRow(definition, text), text).to.throw();
  });

  it("freezes state, initial state and rows at every level", () => {
    const nested = {
      ...definition,
      state: z.object({ list: z.array(z.object({ a: z.number() })) }),
      rows: z.object({ b: z.array(z.number()) }),
      initial: { list: [{ a: 0 }] },
    };
    const actor = decodeActor(
      nested,
      '{"state":{"list":[{"a":1}]}}',
      new Map([["r", decodeRow(nested, '{"b":[1]}')]]),
    );
    const { list } = actor.state as { list: { a: number }[] };
    const row = actor.rows.get("r") as { b: number[] };
    for (const part of [list, list[0], row, row.b]) expect(part).to.be.frozen;
    const fresh = decodeActor(nested, undefined, noRows);
    expect((fresh.state as typeof nested.initial).list[0]).to.be.frozen;
  });
});

describe("deepFreeze()", () => {
  it("freezes every level, and accepts values without levels", () => {
    const value = deepFreeze({ a: { b: [{ c: 1 }] }, d: null });
    for (const part of [value, value.a, value.a.b, value.a.b[0]]) expect(part).to.be.frozen;
    for (const plain of [1, "x", null, undefined, true]) expect(deepFreeze(plain)).to.equal(plain);
  });
});
