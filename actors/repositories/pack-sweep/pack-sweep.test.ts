import { expect } from "chai";
import type { Envelope } from "../../../schemas/contract.ts";
import { PACK_HELD_MS, PACK_SWEEP_BATCH } from "../../../schemas/repositories/limits.ts";
import { PACK_SWEEP, packSweep } from "../../../schemas/repositories/pack-sweep.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import {
  PACK_CONDEMNED_MS,
  PACK_SWEEP_GRACE_MS,
  PACK_SWEEP_MS,
  packSweepActor,
} from "./pack-sweep.ts";

const ACCOUNT = "a".repeat(32);
const sha = (number: number) => number.toString(16).padStart(64, "0");
const pack = (number: number, sequence = 1, family: "pack" | "lfs" = "pack") => ({
  family,
  accountId: ACCOUNT,
  sha256: sha(number),
  sequence,
});

type Message = keyof typeof packSweep.messages;

class Sweep {
  now = 1_000;
  state: (typeof packSweepActor)["initial"] = packSweepActor.initial;
  // biome-ignore lint/suspicious/noExplicitAny: rows as the handlers made them.
  rows = new Map<string, any>();

  // biome-ignore lint/suspicious/noExplicitAny: one door for all messages.
  tell(message: Message, input: any = {}): any {
    const { now, rows } = this;
    const context = { now, rows, key: PACK_SWEEP };
    const handled = runHandler(packSweepActor, message, this.state, input, context);
    this.state = handled.state;
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, value);
    }
    return handled;
  }

  condemn(...packs: ReturnType<typeof pack>[]) {
    return this.tell("condemn", { observedFrom: this.now, packs }).reply.removable;
  }
}

describe("pack-sweep", () => {
  let sweep: Sweep;
  beforeEach(() => {
    sweep = new Sweep();
  });

  it("begin() sets the first sweep, once", () => {
    expect(sweep.tell("begin").remind).to.deep.equal({ sweepDue: 1_000 + PACK_SWEEP_MS });
    expect(sweep.tell("begin").changed).to.equal(false);
  });

  it("sweepDue() enqueues the task and sets the next reminder", () => {
    const { send, remind } = sweep.tell("sweepDue");
    expect(send).to.have.length(1);
    expect(send[0]).to.include({ kind: "git-upkeep", message: "sweep", lane: "sweep" });
    expect(remind).to.deep.equal({ sweepDue: 1_000 + PACK_SWEEP_MS });
  });

  it("condemn() releases a pack for deletion after no repository named it for the grace period, not before", () => {
    expect(sweep.condemn(pack(1))).to.deep.equal([]);
    sweep.now += PACK_SWEEP_GRACE_MS - 1;
    expect(sweep.condemn(pack(1))).to.deep.equal([]);
    sweep.now += 1;
    expect(sweep.condemn(pack(1))).to.deep.equal([pack(1)]);
  });

  it("condemn() ignores a scan that began before the grace period ended, however late it reports", () => {
    sweep.condemn(pack(1));
    const observedFrom = sweep.now + PACK_SWEEP_GRACE_MS - 1;
    sweep.now += 10 * PACK_SWEEP_GRACE_MS;
    const { removable } = sweep.tell("condemn", { observedFrom, packs: [pack(1)] }).reply;
    expect(removable).to.deep.equal([]);
  });

  it("condemn() restarts the grace period of a pack that was stored again", () => {
    sweep.condemn(pack(1));
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(pack(1, 2))).to.deep.equal([]);
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(pack(1, 2))).to.deep.equal([pack(1, 2)]);
  });

  it("hold() acquits condemned packs, and writes nothing if there are none", () => {
    sweep.condemn(pack(1));
    sweep.now += PACK_SWEEP_GRACE_MS;
    const held = sweep.tell("hold", { accountId: ACCOUNT, packs: [sha(1)] });
    expect(held.reply).to.deep.equal({ heldMs: PACK_HELD_MS });
    expect(sweep.condemn(pack(1))).to.deep.equal([]);
    const other = sweep.tell("hold", { accountId: ACCOUNT, packs: [sha(2)] });
    expect(other.rows).to.deep.equal({});
    expect(other.changed).to.equal(false);
  });

  it("a hold expires well before its pack can be deleted", () => {
    expect(2 * PACK_HELD_MS).to.be.lessThan(PACK_SWEEP_GRACE_MS);
  });

  it("hold() refuses a pack during its removal", () => {
    sweep.condemn(pack(1));
    sweep.now += PACK_SWEEP_GRACE_MS;
    sweep.condemn(pack(1));
    const hold = () => sweep.tell("hold", { accountId: ACCOUNT, packs: [sha(2), sha(1)] });
    expect(refusal(hold).code).to.equal("busy");
    expect(sweep.tell("listRemovable").reply.removable).to.deep.equal([pack(1)]);
    // During the removal, condemning the pack again changes nothing, even if a blob of the same name with a later
    // sequence was found.
    expect(sweep.condemn(pack(1), pack(1, 7))).to.deep.equal([]);
    sweep.tell("removed", { packs: [pack(1)] });
    expect(sweep.rows.size).to.equal(0);
    hold();
    sweep.tell("removed", { packs: [pack(1)] });
  });

  it("removed() keeps packs condemned under another sequence", () => {
    sweep.condemn(pack(1, 9));
    sweep.tell("removed", { packs: [pack(1, 3)] });
    expect(sweep.rows.size).to.equal(1);
  });

  it("removed() reports the bytes of each account once, as they were before the removal", () => {
    const other = { ...pack(3), accountId: "b".repeat(32), bytes: 30 };
    const packs = [{ ...pack(1), bytes: 10 }, { ...pack(2), bytes: 20 }, other];
    sweep.condemn(...packs);
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(...packs)).to.deep.equal(packs);
    // After the removal, a repeated sweep finds no bytes any more.
    const removed = packs.map((one) => ({ ...one, bytes: 0 }));
    const sent = sweep.tell("removed", { packs: removed }).send;
    const told = sent.map(({ kind, key, input }: Envelope) => ({ kind, key, input }));
    expect(told).to.deep.equal([
      { kind: "git-storage", key: ACCOUNT, input: { bytes: 30 } },
      { kind: "git-storage", key: "b".repeat(32), input: { bytes: 30 } },
    ]);
    expect(sweep.tell("removed", { packs: removed }).send).to.deep.equal([]);
  });

  it("removed() believes the caller's bytes where an older version has stored none", () => {
    sweep.condemn(pack(1));
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(pack(1))).to.deep.equal([pack(1)]);
    const { send } = sweep.tell("removed", { packs: [{ ...pack(1), bytes: 10 }] });
    expect(send[0]).to.deep.include({ kind: "git-storage", input: { bytes: 10 } });
  });

  it("sweepDue() forgets packs condemned long ago and not seen since, except during their removal", () => {
    sweep.condemn(pack(1), pack(2));
    sweep.now += PACK_SWEEP_GRACE_MS;
    sweep.condemn(pack(2));
    sweep.now += PACK_CONDEMNED_MS;
    sweep.tell("sweepDue");
    expect(sweep.rows.size).to.equal(2);
    sweep.now += 1;
    sweep.tell("sweepDue");
    expect([...sweep.rows.keys()]).to.deep.equal([`${ACCOUNT}.${sha(2)}`]);
  });

  it("condemn() accepts PACK_SWEEP_BATCH packs and refuses one more", () => {
    const packs = Array.from({ length: PACK_SWEEP_BATCH + 1 }, (_, number) => pack(number));
    sweep.condemn(...packs.slice(1));
    expect(() => sweep.condemn(...packs)).to.throw();
  });

  it("a large file and a pack of the same hash are separate", () => {
    sweep.condemn(pack(1), pack(1, 5, "lfs"));
    sweep.tell("hold", { accountId: ACCOUNT, packs: [sha(1)], family: "lfs" });
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(pack(1), pack(1, 5, "lfs"))).to.deep.equal([pack(1)]);
    sweep.now += PACK_SWEEP_GRACE_MS;
    expect(sweep.condemn(pack(1, 5, "lfs"))).to.deep.equal([pack(1, 5, "lfs")]);
    const code = refusal(() => {
      sweep.tell("hold", { accountId: ACCOUNT, packs: [sha(1)], family: "lfs" });
    }).code;
    expect(code).to.equal("busy");
  });

  it("an entry stored before families existed is a pack", () => {
    const { family: _, ...old } = pack(1);
    expect(
      packSweep.messages.condemn.input.parse({ observedFrom: 1, packs: [old] }).packs,
    ).to.deep.equal([pack(1)]);
  });
});
