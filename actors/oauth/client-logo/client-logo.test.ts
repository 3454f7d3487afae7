import { expect } from "chai";
import type { DeepReadonly, Input } from "../../../schemas/contract.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { LOGO_BYTES_MAX } from "../../../schemas/oauth/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { clientLogoActor, LOGO_FETCH_LOST_MS, LOGO_RETRIES_MS } from "./client-logo.ts";
import { ClientLogoState } from "./client-logo-state.ts";

const uri = "https://bot.example.com/logo.png";
const other = "https://bot.example.com/other.png";
const key = "c".repeat(32);
const logo = { type: "image/png" as const, hash: "1".repeat(64), base64: "AAAA" };

type State = DeepReadonly<ClientLogoState>;
type Messages = typeof clientLogo.messages;

function run<N extends keyof Messages & string>(
  state: State,
  message: N,
  input: Input<Messages[N]>,
  now = 1_000,
) {
  return runHandler(clientLogoActor, message, state, input, { key, now });
}

const following = (address = uri) => run(clientLogoActor.initial, "follow", { uri: address }).state;
const copied = () => run(following(), "fetched", { uri, attempt: 1, logo }).state;

describe("client-logo", () => {
  it("follow() fetches the address once each time it is set", () => {
    const first = run(clientLogoActor.initial, "follow", { uri });
    const task = { to: "worker", kind: "logo-fetch", key, message: "fetch", lane: "fetch" };
    expect(first.send).to.deep.equal([{ ...task, input: { uri, attempt: 1 } }]);
    const again = run(copied(), "follow", { uri });
    expect(again.send).to.have.length(1);
    expect(run(again.state, "find", { uri }).reply.hash).to.equal(logo.hash);
  });

  it("follow() during a fetch queues no second task; the result starts the fetch of the newest address", () => {
    for (const found of [logo, undefined]) {
      for (const newest of [uri, other]) {
        let state: State = following();
        for (const address of [other, uri, newest]) {
          const waiting = run(state, "follow", { uri: address }, 2_000);
          expect(waiting.send).to.deep.equal([]);
          expect(waiting.remind).to.deep.equal({ retry: 1_000 + LOGO_FETCH_LOST_MS });
          state = waiting.state;
        }
        const result = { uri, attempt: 1, ...(found && { logo: found }) };
        const next = run(state, "fetched", result, 3_000);
        expect(next.send.map(({ input }) => input)).to.deep.equal([{ uri: newest, attempt: 1 }]);
        expect(next.remind).to.deep.equal({ retry: null });
        // The result is older than the request, so it does not become the copy.
        expect(run(next.state, "find", { uri }).reply).to.deep.equal({});
        const ended = run(next.state, "fetched", { uri: newest, attempt: 1, logo });
        expect(run(ended.state, "find", { uri: newest }).reply.hash).to.equal(logo.hash);
        expect(run(ended.state, "follow", { uri }).send).to.have.length(1);
      }
    }
  });

  it("follow() waits up to LOGO_FETCH_LOST_MS for the result of a fetch", () => {
    const lostAt = 1_000 + LOGO_FETCH_LOST_MS;
    const waiting = run(following(), "follow", { uri: other }, lostAt - 1);
    expect(waiting.send).to.deep.equal([]);
    const lost = run(waiting.state, "retry", {}, lostAt);
    expect(lost.send.map(({ input }) => input)).to.deep.equal([{ uri: other, attempt: 1 }]);
    expect(run(following(), "follow", { uri: other }, lostAt).send).to.deep.equal(lost.send);
    expect(run(lost.state, "fetched", { uri, attempt: 1, logo }).changed).to.equal(false);
  });

  it("follow() without an address during a fetch deletes the copy, and the state after the result", () => {
    const again = run(copied(), "follow", { uri }).state;
    const removed = run(again, "follow", { uri: null });
    expect(refusal(() => run(removed.state, "read", { hash: logo.hash })).code).to.equal(
      "not_found",
    );
    expect(run(removed.state, "follow", { uri: null }).changed).to.equal(false);
    expect(run(removed.state, "fetched", { uri, attempt: 1, logo }).forgotten).to.equal(true);
    expect(run(removed.state, "retry", {}).forgotten).to.equal(true);
    expect(run(removed.state, "follow", { uri }).send).to.deep.equal([]);
  });

  it("state of the first release loads, and takes the result of its fetch", () => {
    const state = ClientLogoState.parse({ uri, attempt: 1 });
    const { state: next } = run(state, "fetched", { uri, attempt: 1, logo });
    expect(run(next, "find", { uri }).reply).to.deep.equal({ hash: logo.hash });
  });

  it("find() returns a copy of the current address only, and read() returns its bytes by hash", () => {
    expect(run(following(), "find", { uri }).reply).to.deep.equal({});
    const state = copied();
    expect(run(state, "find", { uri }).reply).to.deep.equal({ hash: logo.hash });
    expect(run(state, "read", { hash: logo.hash }).reply).to.deep.equal(logo);
    expect(refusal(() => run(state, "read", { hash: "2".repeat(64) })).code).to.equal("not_found");
    const moved = run(state, "follow", { uri: other }).state;
    for (const asked of [uri, other]) {
      expect(run(moved, "find", { uri: asked }).reply).to.deep.equal({});
    }
    expect(refusal(() => run(moved, "read", { hash: logo.hash })).code).to.equal("not_found");
  });

  it("follow() without an address deletes the copy, and repeated changes nothing", () => {
    expect(run(copied(), "follow", { uri: null }).forgotten).to.equal(true);
    expect(run(clientLogoActor.initial, "follow", { uri: null }).changed).to.equal(false);
  });

  it("fetched() counts once if repeated, and is ignored for an earlier address or attempt", () => {
    const state = copied();
    const again = run(state, "fetched", { uri, attempt: 1, logo });
    expect(again.state).to.deep.equal(state);
    const late = run(following(other), "fetched", { uri, attempt: 1, logo });
    expect(late.changed).to.equal(false);
    const retried = run(following(), "retry", {}).state;
    expect(run(retried, "fetched", { uri, attempt: 1 }).remind).to.deep.equal({});
    expect(run(clientLogoActor.initial, "fetched", { uri, attempt: 1, logo }).changed).to.equal(
      false,
    );
  });

  it("a failed fetch is retried after each pause, and then no more", () => {
    let state: State = following();
    for (const [index, pause] of LOGO_RETRIES_MS.entries()) {
      const failed = run(state, "fetched", { uri, attempt: index + 1 }, 5_000);
      expect(failed.remind).to.deep.equal({ retry: 5_000 + pause });
      const retried = run(failed.state, "retry", {});
      expect(retried.send[0]?.input).to.deep.equal({ uri, attempt: index + 2 });
      state = retried.state;
    }
    const last = run(state, "fetched", { uri, attempt: LOGO_RETRIES_MS.length + 1 });
    expect(last.remind).to.deep.equal({ retry: null });
    expect(run(clientLogoActor.initial, "retry", {}).changed).to.equal(false);
  });

  it("a copy is accepted up to LOGO_BYTES_MAX", () => {
    const { input } = clientLogo.messages.fetched;
    const taken = (bytes: number) => {
      const base64 = Buffer.alloc(bytes).toString("base64");
      return input.safeParse({ uri, attempt: 1, logo: { ...logo, base64 } }).success;
    };
    expect([taken(LOGO_BYTES_MAX), taken(LOGO_BYTES_MAX + 3)]).to.deep.equal([true, false]);
  });
});
