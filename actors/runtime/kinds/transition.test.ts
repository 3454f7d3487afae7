import { expect } from "chai";
import { z } from "zod";
import { type Contract, defineContract, type Envelope } from "../../../schemas/contract.ts";
import {
  KEY_CHARS_MAX,
  ROW_BYTES_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_ROWS_MAX,
  TRANSITION_SEND_BYTES_MAX,
} from "../../../schemas/limits.ts";
import { counterActor } from "../../../scripts/testing/counter.ts";
import { tallyActor } from "../../../scripts/testing/probe.ts";
import { inRequest, REQUEST_HEADER } from "../lib/trace.ts";
import { type AnyActorDefinition, defineActor } from "./define-actor.ts";
import { readTransition, TRANSITION_REMINDERS_MAX, TRANSITION_SENDS_MAX } from "./transition.ts";

const plain = defineActor(
  defineContract({ kind: "plain", messages: { poke: { input: z.object({}) } } }),
  { state: z.object({}), initial: {}, handlers: { poke: (state) => ({ state }) } },
);
const state = {};
/** Rows of any shape. */
const loose: AnyActorDefinition = { ...counterActor, rows: z.unknown() };
const read = (transition: object, definition: AnyActorDefinition = loose) =>
  readTransition(definition, "counter.me", { state, ...transition });
const send = (fields: Partial<Envelope> = {}): Envelope => ({
  to: "actor",
  kind: "counter",
  key: "k",
  message: "receive",
  input: { by: 1 },
  ...fields,
});
const many = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, value]));
/** A JSON string of so many bytes. */
const bytes = (count: number) => "x".repeat(count - 2);

describe("readTransition()", () => {
  it("finds no effects in a transition of only state and reply", () => {
    for (const transition of [{}, { reply: 1 }, { send: [] }, { rows: undefined }]) {
      expect(read(transition)).to.equal(undefined);
    }
  });

  it("refuses a misspelled key, and a transition without state", () => {
    expect(() => read({ sends: [] })).to.throw('A transition has no "sends"');
    expect(() => read({ row: {} })).to.throw('A transition has no "row"');
    expect(() => read({ state: undefined })).to.throw("A transition has a state");
  });

  it("reads rows, reminders and sends", () => {
    expect(
      read({ rows: { a: 1, b: null }, remind: { tick: 5, other: undefined }, send: [send()] }),
    ).to.deep.include({
      rows: [
        ["a", { value: 1, text: "1", bytes: 1 }],
        ["b", { value: null, text: null, bytes: 0 }],
      ],
      remind: [["tick", 5]],
    });
    const [sent] = read({ send: [send()] })?.sends ?? [];
    expect(sent?.message).to.deep.equal({ from: "counter.me", ...send() });
    expect(JSON.parse(sent?.text ?? "")).to.deep.equal(sent?.message);
  });

  it("names the request in sends, but not in those of a kind that accounts share", () => {
    const shared = { ...loose, contract: { ...loose.contract, isShared: true as const } };
    const traceOf = (definition: AnyActorDefinition) =>
      inRequest("run", "id", () => read({ send: [send()] }, definition))?.sends[0]?.message.trace;
    expect(traceOf(loose)).to.deep.equal({ [REQUEST_HEADER]: "run.id" });
    expect(traceOf(shared)).to.equal(undefined);
    const own = { [REQUEST_HEADER]: "run.earlier" };
    for (const definition of [loose, shared]) {
      const run = () => read({ send: [{ ...send(), trace: own }] }, definition);
      expect(inRequest("run", "id", run)?.sends[0]?.message.trace).to.deep.equal(own);
    }
  });

  it("takes TRANSITION_ROWS_MAX rows, and not one more", () => {
    expect(read({ rows: many(TRANSITION_ROWS_MAX, 1) })?.rows).to.have.length(TRANSITION_ROWS_MAX);
    expect(() => read({ rows: many(TRANSITION_ROWS_MAX + 1, 1) })).to.throw(
      "501 rows, at most 500",
    );
  });

  it("refuses a row that could not be loaded again", () => {
    expect(() => read({ rows: { a: "x" } }, counterActor)).to.throw("expected number");
    expect(read({ rows: { a: 1, b: null } }, counterActor)?.rows).to.have.length(2);
  });

  it("takes a row of ROW_BYTES_MAX bytes, and not one more", () => {
    expect(read({ rows: { a: bytes(ROW_BYTES_MAX) } })?.rows).to.have.length(1);
    expect(() => read({ rows: { a: bytes(ROW_BYTES_MAX + 1) } })).to.throw("bytes of row a");
    expect(() => read({ rows: { a: "é".repeat(ROW_BYTES_MAX / 2) } })).to.throw("bytes of row a");
  });

  it("takes TRANSITION_ROW_BYTES_MAX bytes of rows, and not one more", () => {
    const count = Math.floor(TRANSITION_ROW_BYTES_MAX / ROW_BYTES_MAX);
    const rest = TRANSITION_ROW_BYTES_MAX - count * ROW_BYTES_MAX;
    const full = many(count, bytes(ROW_BYTES_MAX));
    expect(read({ rows: { ...full, rest: bytes(rest) } })?.rows).to.have.length(count + 1);
    expect(() => read({ rows: { ...full, rest: bytes(rest + 1) } })).to.throw("bytes of rows");
  });

  it("takes a row's name of 1 to KEY_CHARS_MAX encoded characters", () => {
    expect(read({ rows: { ["x".repeat(KEY_CHARS_MAX)]: 1 } })?.rows).to.have.length(1);
    expect(() => read({ rows: { ["x".repeat(KEY_CHARS_MAX + 1)]: 1 } })).to.throw("row's name");
    expect(() => read({ rows: { ["é".repeat(KEY_CHARS_MAX / 6 + 1)]: 1 } })).to.throw("row's name");
    expect(() => read({ rows: { "": 1 } })).to.throw("A row has a name");
  });

  it("refuses a row without a value, and rows of a kind without rows", () => {
    expect(() => read({ rows: { a: undefined } })).to.throw("Row a has a value");
    expect(() => read({ rows: { a: 1 } }, plain)).to.throw("plain has no rows");
  });

  it("refuses effects of a kind that is not durable", () => {
    expect(() => read({ send: [send()] }, tallyActor)).to.throw("tally is not durable");
  });

  it("takes TRANSITION_REMINDERS_MAX reminders, and not one more", () => {
    const messages = many(TRANSITION_REMINDERS_MAX + 1, { input: z.object({}) });
    const busy: AnyActorDefinition = { ...plain, contract: { kind: "busy", messages } as Contract };
    const { remind } = read({ remind: many(TRANSITION_REMINDERS_MAX, 1) }, busy) ?? {};
    expect(remind).to.have.length(TRANSITION_REMINDERS_MAX);
    const past = { remind: many(TRANSITION_REMINDERS_MAX + 1, 1) };
    expect(() => read(past, busy)).to.throw("17 reminders, at most 16");
  });

  it("takes whole epoch milliseconds of four-digit years as a reminder's time", () => {
    for (const at of [1, Date.UTC(9999, 11, 31)]) expect(read({ remind: { tick: at } })).to.be.ok;
    for (const at of [
      0,
      -1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Date.UTC(10_000, 0, 1),
      "1",
    ]) {
      expect(() => read({ remind: { tick: at } }), String(at)).to.throw("Reminder tick has a time");
    }
  });

  it("refuses a reminder of a message that the contract does not have", () => {
    expect(() => read({ remind: { tock: 5 } })).to.throw("counter has no message tock");
  });

  it("takes TRANSITION_SENDS_MAX sends, and not one more", () => {
    const sends = Array.from({ length: TRANSITION_SENDS_MAX + 1 }, () => send());
    expect(read({ send: sends.slice(1) })?.sends).to.have.length(TRANSITION_SENDS_MAX);
    expect(() => read({ send: sends })).to.throw("257 sends, at most 256");
  });

  it("takes TRANSITION_SEND_BYTES_MAX bytes of sends, and not one more", () => {
    const empty = Buffer.byteLength(read({ send: [send({ input: "" })] })?.sends[0]?.text ?? "");
    const room = TRANSITION_SEND_BYTES_MAX - empty;
    expect(read({ send: [send({ input: "x".repeat(room) })] })?.sends).to.have.length(1);
    expect(() => read({ send: [send({ input: "x".repeat(room + 1) })] })).to.throw(
      "bytes of sends",
    );
    expect(() => read({ send: [send({ input: "é".repeat(room / 2 + 1) })] })).to.throw("of sends");
    const half = send({ input: "x".repeat(room / 2) });
    expect(() => read({ send: [half, half] })).to.throw("bytes of sends");
  });

  it("takes an address of at most KEY_CHARS_MAX encoded characters, as a caller may write", () => {
    const room = KEY_CHARS_MAX - "counter.".length;
    expect(read({ send: [send({ key: "x".repeat(room) })] })?.sends).to.have.length(1);
    expect(() => read({ send: [send({ key: "x".repeat(room + 1) })] })).to.throw("of an address");
    expect(() => read({ send: [send({ key: "" })] })).to.throw("A send has a key");
    expect(() => read({ send: [send({ key: "\ud800" })] })).to.throw("not well-formed Unicode");
  });
});
