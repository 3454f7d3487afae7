import { expect } from "chai";
import type { SocketAction } from "../../../schemas/apps/agent-sockets.ts";
import { SocketBatch, socketsSubject } from "../../../schemas/apps/agent-sockets.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import {
  SOCKET_ACTION_SOCKETS_MAX,
  SOCKET_BATCH_BYTES_MAX,
  SOCKET_BATCH_WAITING_BYTES_MAX,
  SocketSender,
} from "./socket-sender.ts";

describe("SocketSender", function () {
  this.timeout(120_000);
  let world: World;
  let gateways = 0;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  const frame = (text: string): SocketAction => ({ to: [1], frame: { text } });
  const frameOf = (bytes: number) => frame("f".repeat(bytes));

  /** Opens a sender, and a gateway that answers the batches up to `answersMax`. */
  const opened = ({ isOurs = true } = {}) => {
    const gateway = `g${++gateways}`;
    const batches: SocketBatch[] = [];
    const gone: (number[] | "all")[] = [];
    const state = { answersMax: Infinity, held: 0, isLost: false };
    const subscription = world.bus.connection.subscribe(socketsSubject(gateway), {
      callback: (_, message) => {
        const batch = SocketBatch.parse(message.json());
        // A batch whose answer was late arrives twice, but is recorded once.
        if (batch.batch > (batches.at(-1)?.batch ?? 0)) batches.push(batch);
        if (batch.batch <= state.answersMax) message.respond(JSON.stringify({ gone: [] }));
      },
    });
    const sender = new SocketSender({
      ...{ bus: world.bus, clock: systemClock, agent: "a", owner: "1" },
      waits: (bytes) => {
        state.held += bytes;
      },
      sent: (bytes) => {
        state.held -= bytes;
      },
      gone: (_, numbers) => gone.push(numbers),
      confirm: () => Promise.resolve(isOurs),
      lost: () => {
        state.isLost = true;
      },
    });
    const send = (actions: SocketAction[], commit?: number) =>
      sender.send({ [gateway]: actions }, commit);
    return { sender, gateway, batches, gone, state, send, subscription };
  };

  it("keeps a commit whole until its last part has arrived, so that the next owner divides it alike", async () => {
    const { sender, gateway, batches, send, state } = opened();
    state.answersMax = 1;
    const actions = [1, 2, 3].map(() => frameOf(SOCKET_BATCH_BYTES_MAX / 2));
    send(actions, 7);
    await until("the first part has arrived", () => batches.length > 1);
    expect(batches.map(({ part }) => part).slice(0, 2)).to.deep.equal([0, 1]);
    expect(sender.waiting).to.deep.equal([{ commit: 7, to: { [gateway]: actions } }]);
    expect(sender.arrivedOf(7)).to.equal(6);
    state.answersMax = Infinity;
    await sender.arrived(gateway);
    expect(sender.waiting).to.deep.equal([]);
    expect(sender.arrivedOf(7)).to.equal(7);
  });

  it("sends an action for SOCKET_ACTION_SOCKETS_MAX sockets whole, and for one more as two", async () => {
    const { sender, gateway, batches, send } = opened();
    const sockets = (count: number) =>
      Array.from({ length: count }, (_, index) => Number.MAX_SAFE_INTEGER - index);
    for (const [more, commit] of [
      [0, 1],
      [1, 2],
    ] as const) {
      const to = sockets(SOCKET_ACTION_SOCKETS_MAX + more);
      send([{ to, frame: { text: "x" } }], commit);
      await sender.arrived(gateway);
      const actions = batches.splice(0).flatMap((batch) => batch.actions);
      expect(actions).to.have.length(1 + more);
      expect(actions.flatMap((action) => action.to)).to.deep.equal(to);
    }
  });

  it("brings a frame to more sockets than one message can name", async () => {
    const { sender, gateway, batches, send } = opened();
    const to = Array.from({ length: 100_000 }, (_, index) => Number.MAX_SAFE_INTEGER - index);
    send([{ to, frame: { text: "x" } }], 1);
    await sender.arrived(gateway);
    const actions = batches.flatMap((batch) => batch.actions);
    expect(actions.flatMap((action) => action.to)).to.deep.equal(to);
    expect(actions.every((action) => "frame" in action)).to.equal(true);
  });

  it("reports when waiting actions have arrived", async () => {
    const { sender, gateway, batches, send, state } = opened();
    await sender.arrived(gateway);
    state.answersMax = 0;
    send([frame("x")]);
    let hasArrived = false;
    const arrived = sender.arrived(gateway).then(() => {
      hasArrived = true;
    });
    await until("it is on its way", () => batches.length > 0);
    expect(hasArrived).to.equal(false);
    state.answersMax = Infinity;
    await arrived;
    expect(sender.isIdle).to.equal(true);
    expect(state.held).to.equal(0);
  });

  it("holds as many bytes for a gateway as may wait, and gives its sockets up past them", async () => {
    const { sender, gateway, batches, gone, send, state } = opened();
    state.answersMax = 0;
    send([frame("first")]);
    await until("it is on its way", () => batches.length > 0);
    const one = 64 + "[1]".length + JSON.stringify({ text: "" }).length;
    const left = SOCKET_BATCH_WAITING_BYTES_MAX - state.held;
    const count = Math.ceil(left / SOCKET_BATCH_BYTES_MAX);
    const each = Math.floor(left / count) - one;
    for (let at = 0; at < count; at++) send([frameOf(each + (at < left % count ? 1 : 0))]);
    expect(state.held).to.equal(SOCKET_BATCH_WAITING_BYTES_MAX);
    expect(gone).to.deep.equal([]);
    const arrived = sender.arrived(gateway);
    send([frame("")]);
    expect(gone).to.deep.equal(["all"]);
    await arrived;
    expect(state.held).to.equal(0);
    // Frames that close sockets are still sent, and abandoned frames are not retried.
    state.answersMax = Infinity;
    const before = batches.length;
    send([{ to: [1], close: { code: 1012, reason: "given up" } }], 9);
    await sender.arrived(gateway);
    const later = batches.slice(before);
    expect(later.map(({ commit }) => commit)).to.deep.equal([9]);
  });

  it("gives sockets up whose gateway is not there", async () => {
    const { sender, gateway, gone, send, subscription } = opened();
    subscription.unsubscribe();
    send([frame("x")], 1);
    await sender.arrived(gateway);
    expect(gone).to.deep.equal(["all"]);
  });

  it("an action for no socket notices that the gateway is not there, and changes nothing where it is", async () => {
    const { sender, gateway, gone, send, subscription } = opened();
    send([{ to: [], frame: { text: "" } }]);
    await sender.arrived(gateway);
    expect(gone).to.deep.equal([]);
    subscription.unsubscribe();
    send([{ to: [], frame: { text: "" } }]);
    await sender.arrived(gateway);
    expect(gone).to.deep.equal(["all"]);
  });

  it("sends actions without a record only while the agent is surely here", async () => {
    const { batches, send, state } = opened({ isOurs: false });
    send([frame("x")]);
    await until("that is said", () => state.isLost);
    const other = opened({ isOurs: false });
    other.send([frame("x")], 3);
    await other.sender.arrived(other.gateway);
    expect(other.batches).to.have.length(1);
    expect(batches).to.deep.equal([]);
  });
});
