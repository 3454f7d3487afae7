import { expect } from "chai";
import { TRANSITION_SEND_BYTES_MAX } from "../../../schemas/limits.ts";
import { OUTBOX_BYTES_MAX, OUTBOX_TASK_BYTES_MAX, Outbox, type Unsent, unsent } from "./outbox.ts";

const note = (text: string): Unsent =>
  unsent({
    from: "probe.a",
    to: "actor",
    kind: "probe",
    key: "b",
    message: "note",
    input: { text },
  });

const task = (text: string): Unsent => {
  const message = {
    to: "worker",
    kind: "echo",
    key: "k",
    message: "tell",
    input: { text },
  } as const;
  return unsent({ from: "probe.a", ...message });
};
const mail = (sendBytes: number) => ({ sendBytes, taskBytes: 0 });
const tasks = (bytes: number) => ({ sendBytes: bytes, taskBytes: bytes });

function committed(outbox: Outbox, ...texts: string[]): string {
  const entries = outbox.number(texts.map(note));
  const text = outbox.toText(entries);
  outbox.add(entries);
  return text;
}
const texts = (outbox: Outbox) =>
  outbox.entries.map(({ number, message }) => [number, (message.input as { text: string }).text]);

describe("Outbox", () => {
  it("keeps sends in order under growing numbers, also when it is read again", () => {
    const outbox = new Outbox(undefined);
    committed(outbox, "a", 'b"é\n');
    const stored = committed(outbox, "c");
    const expected = [
      [1, "a"],
      [2, 'b"é\n'],
      [3, "c"],
    ];
    expect(texts(outbox)).to.deep.equal(expected);
    expect(texts(new Outbox(stored))).to.deep.equal(expected);
  });

  it("omits mail that is marked as sent, and never reuses its numbers", () => {
    const stored = committed(new Outbox(undefined), "a", "b", "c");
    const outbox = new Outbox(stored, [{ sent: 2, waiting: [] }]);
    expect(texts(outbox)).to.deep.equal([[3, "c"]]);
    committed(outbox, "d");
    expect(texts(outbox)).to.deep.equal([
      [3, "c"],
      [4, "d"],
    ]);
    expect(new Outbox(stored, [{ sent: 9, waiting: [] }]).number([note("x")])[0]?.number).to.equal(
      10,
    );
    expect(
      new Outbox(undefined, [{ sent: 9, waiting: [] }]).number([note("x")])[0]?.number,
    ).to.equal(10);
  });

  it("number() reserves nothing: a failed commit leaves no gap", () => {
    const outbox = new Outbox(undefined);
    outbox.number([note("lost")]);
    committed(outbox, "kept");
    expect(texts(outbox)).to.deep.equal([[1, "kept"]]);
  });

  it("forget() removes a beginning, everything or nothing, and remembers the mark", () => {
    const outbox = new Outbox(undefined);
    committed(outbox, "a", "b", "c");
    outbox.forget({ sent: 0, waiting: [] });
    expect(outbox.entries).to.have.length(3);
    outbox.forget({ sent: 2, waiting: [1] });
    expect(texts(outbox)).to.deep.equal([
      [1, "a"],
      [3, "c"],
    ]);
    outbox.forget({ sent: 2, waiting: [] });
    expect(texts(outbox)).to.deep.equal([[3, "c"]]);
    expect(outbox.markAfter([]).sent).to.equal(2);
    outbox.forget({ sent: 99, waiting: [] });
    expect(outbox.entries).to.have.length(0);
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX))).to.equal(true);
  });

  it("hasRoomFor() counts bytes up to OUTBOX_BYTES_MAX, present entries included", () => {
    const outbox = new Outbox(undefined);
    committed(outbox, "é".repeat(1_000));
    const held = Buffer.byteLength(note("é".repeat(1_000)).text);
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX - held))).to.equal(true);
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX - held + 1))).to.equal(false);
    outbox.forget({ sent: 1, waiting: [] });
    committed(outbox, "a");
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX - held))).to.equal(true);
  });

  it("hasRoomFor() leaves half of the outbox to changes without tasks", () => {
    const outbox = new Outbox(undefined);
    const entries = outbox.number([task("x".repeat(1_000))]);
    outbox.add(entries);
    const held = entries[0]?.bytes ?? 0;
    expect(outbox.hasRoomFor(tasks(OUTBOX_TASK_BYTES_MAX - held))).to.equal(true);
    expect(outbox.hasRoomFor(tasks(OUTBOX_TASK_BYTES_MAX - held + 1))).to.equal(false);
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX - held))).to.equal(true);
    // A change that no half could hold needs room in the whole outbox.
    expect(outbox.hasRoomFor(tasks(OUTBOX_TASK_BYTES_MAX + 1))).to.equal(true);
    expect(outbox.hasRoomFor(tasks(OUTBOX_BYTES_MAX - held + 1))).to.equal(false);
    // Counts the tasks of earlier changes of the same commit, too.
    const earlier = tasks(OUTBOX_TASK_BYTES_MAX - held);
    expect(outbox.hasRoomFor(tasks(1), earlier)).to.equal(false);
    expect(outbox.hasRoomFor(mail(1), earlier)).to.equal(true);
    outbox.forget({ sent: 1, waiting: [] });
    expect(outbox.hasRoomFor(tasks(OUTBOX_TASK_BYTES_MAX))).to.equal(true);
  });

  it("hasRoomFor() lets an empty outbox take a full change, and no more", () => {
    const outbox = new Outbox(undefined);
    expect(outbox.hasRoomFor(mail(2 * TRANSITION_SEND_BYTES_MAX))).to.equal(true);
    expect(outbox.hasRoomFor(tasks(2 * TRANSITION_SEND_BYTES_MAX))).to.equal(true);
    expect(outbox.hasRoomFor(mail(OUTBOX_BYTES_MAX + 1))).to.equal(false);
  });
});
