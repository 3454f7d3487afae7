import { expect } from "chai";
import type { DeepReadonly, Input } from "../../../schemas/contract.ts";
import {
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CLIENTS_PER_DAY_MAX,
} from "../../../schemas/oauth/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { OAUTH_CLIENT_RESERVED_MS, oauthClientListActor } from "./oauth-client-list.ts";
import { OAuthClientListState } from "./oauth-client-list-state.ts";

describe("oauth-client-list", () => {
  it("list() lists the newest first and each client once, though clients are made and deleted between pages", () => {
    const list = new List();
    for (let number = 1; number <= 25; number++) list.make(number);
    const first = list.run("list", { count: 10 });
    list.make(26);
    list.run("removed", { clientId: id(20) });
    list.run("removed", { clientId: id(14) });
    const second = list.run("list", { count: 10, cursor: first.cursor });
    const third = list.run("list", { count: 10, cursor: second.cursor });
    expect(third.cursor).to.equal(undefined);
    const seen = [first, second, third].flatMap(({ clientIds }) => clientIds);
    const expected = Array.from({ length: 25 }, (_, index) => 25 - index).filter((n) => n !== 14);
    expect(seen).to.deep.equal(expected.map(id));
  });

  it("list() refuses an invalid cursor", () => {
    for (const cursor of ["x", "-1", "1.5", " 1", "9".repeat(16)]) {
      const refused = refusal(() => new List().run("list", { count: 1, cursor }));
      expect(refused.code).to.equal("invalid_request");
    }
  });

  it("reserve() lists a client before it is made, and repeated changes nothing", () => {
    const list = new List();
    list.run("reserve", { clientId: id(1) });
    expect(list.run("list", { count: 1 }).clientIds).to.deep.equal([id(1)]);
    list.run("reserve", { clientId: id(1) });
    expect(list.changed).to.equal(false);
  });

  it("created() and removed() change nothing if repeated or for an unknown client", () => {
    const list = new List();
    list.make(1);
    list.run("created", { clientId: id(1) });
    expect(list.changed).to.equal(false);
    list.run("removed", { clientId: id(1) });
    list.run("removed", { clientId: id(1) });
    expect(list.changed).to.equal(false);
    expect(list.state.clients).to.deep.equal([]);
  });

  it("reserve() accepts OAUTH_CLIENTS_PER_ACCOUNT_MAX clients and refuses one more until one is deleted", () => {
    const list = new List();
    for (let number = 1; number <= OAUTH_CLIENTS_PER_ACCOUNT_MAX; number++) list.make(number);
    const refused = refusal(() => list.make(101));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(OAUTH_CLIENTS_PER_ACCOUNT_MAX));
    list.run("removed", { clientId: id(1) });
    list.make(101);
  });

  it("reserve() counts a reservation for OAUTH_CLIENT_RESERVED_MS; a client made later is listed all the same", () => {
    const list = new List();
    for (let number = 1; number <= OAUTH_CLIENTS_PER_ACCOUNT_MAX; number++) {
      list.run("reserve", { clientId: id(number) });
    }
    list.now += OAUTH_CLIENT_RESERVED_MS - 1;
    expect(refusal(() => list.make(101)).code).to.equal("limit_reached");
    list.now += 1;
    list.make(101);
    expect(list.state.clients).to.have.length(1);
    list.run("created", { clientId: id(1) });
    expect(list.run("list", { count: 10 }).clientIds).to.deep.equal([id(1), id(101)]);
  });

  it("reserve() accepts OAUTH_CLIENTS_PER_DAY_MAX clients within a day, although each is deleted, and refuses one more", () => {
    const list = new List();
    const begunAt = list.now;
    const makeAndRemove = (number: number) => {
      list.make(number);
      list.run("removed", { clientId: id(number) });
    };
    for (let number = 1; number <= OAUTH_CLIENTS_PER_DAY_MAX; number++) {
      list.now += 1;
      makeAndRemove(number);
    }
    const more = OAUTH_CLIENTS_PER_DAY_MAX + 1;
    list.now = begunAt + 1 + 86_400_000 - 1_000;
    const { code, details, message } = refusal(() => makeAndRemove(more));
    expect([code, details.retryAfterS]).to.deep.equal(["rate_limited", 1]);
    expect(message).to.contain(String(OAUTH_CLIENTS_PER_DAY_MAX));
    list.now += 1_000;
    for (let number = more; number < more + OAUTH_CLIENTS_PER_DAY_MAX; number++) {
      makeAndRemove(number);
    }
    expect(refusal(() => makeAndRemove(0)).code).to.equal("rate_limited");
  });

  it("reserve() counts no refused and no repeated reservation", () => {
    const list = new List();
    for (let number = 1; number <= OAUTH_CLIENTS_PER_ACCOUNT_MAX; number++) list.make(number);
    const counted = list.state.lately;
    expect(counted).to.deep.equal({ since: list.now, reservations: OAUTH_CLIENTS_PER_ACCOUNT_MAX });
    expect(refusal(() => list.make(101)).code).to.equal("limit_reached");
    list.run("reserve", { clientId: id(1) });
    expect(list.state.lately).to.deep.equal(counted);
    list.run("created", { clientId: id(102) });
    expect(list.state.lately).to.deep.equal(counted);
  });

  it("state of the first release loads, and its reservations are counted from now on", () => {
    const list = new List();
    list.state = OAuthClientListState.parse({ next: 1, clients: [{ clientId: id(1), number: 0 }] });
    list.make(2);
    expect(list.state.lately?.reservations).to.equal(1);
  });

  it("the stored state loads again", () => {
    const list = new List();
    list.make(1);
    list.run("reserve", { clientId: id(2) });
    const loaded = OAuthClientListState.parse(JSON.parse(JSON.stringify(list.state)));
    expect(loaded).to.deep.equal(list.state);
  });
});

const id = (number: number) => number.toString(16).padStart(32, "0");

type Messages = typeof oauthClientListActor.contract.messages;

/** A list whose state is kept from message to message. */
class List {
  now = 1_000;
  state: DeepReadonly<OAuthClientListState> = oauthClientListActor.initial;
  changed = false;

  run<N extends keyof Messages & string>(message: N, input: Input<Messages[N]>) {
    const handled = runHandler(oauthClientListActor, message, this.state, input, { now: this.now });
    this.state = handled.state;
    this.changed = handled.changed;
    return handled.reply;
  }

  make(number: number): void {
    this.run("reserve", { clientId: id(number) });
    this.run("created", { clientId: id(number) });
  }
}
