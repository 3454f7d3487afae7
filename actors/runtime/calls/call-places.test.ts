import { expect } from "chai";
import { CALLS_OF_REQUEST_MAX } from "../../../gateway/http/call-few.ts";
import { SOCKETS_MAX, socketsOfAccountMax } from "../../../gateway/http/socket-places.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { REQUESTS_PER_WINDOW } from "../../../schemas/limits.ts";
import {
  ACCOUNT_CALLS_MAX,
  CallPlaces,
  CLIENT_CALLS_MAX,
  callsOf,
  VISITORS_CALLS_MAX,
} from "./call-places.ts";

describe("CallPlaces", () => {
  /** Takes places until one is refused as `busy`. */
  function fill(places: CallPlaces, accountId?: string, isVisitor = false): (() => void)[] {
    const taken: (() => void)[] = [];
    const take = () => places.take("counter");
    try {
      for (;;) taken.push(accountId ? callsOf({ accountId, isVisitor }, take) : take());
    } catch (error) {
      expect(error).to.be.instanceOf(ActorError).and.include({ code: "busy" });
      return taken;
    }
  }

  it("take() gives an account ACCOUNT_CALLS_MAX places, and its visitors VISITORS_CALLS_MAX of them", () => {
    const places = new CallPlaces();
    const visitors = fill(places, "a", true);
    expect(visitors).to.have.length(VISITORS_CALLS_MAX);
    const members = fill(places, "a");
    expect(members).to.have.length(ACCOUNT_CALLS_MAX - VISITORS_CALLS_MAX);
    for (const release of [...visitors, ...members]) release();
    expect(fill(places, "a"), "without visitors").to.have.length(ACCOUNT_CALLS_MAX);
  });

  it("take() leaves room to other accounts, however many have filled their share", () => {
    const places = new CallPlaces();
    const counts = ["a", "b", "c", "d"].map((accountId) => fill(places, accountId).length);
    // Each account can take three quarters of the calls that the accounts before it left.
    expect(counts).to.deep.equal([ACCOUNT_CALLS_MAX, 3_072, 768, 192]);
    expect(fill(places)).to.have.length(CLIENT_CALLS_MAX - counts.reduce((sum, one) => sum + one));
  });

  it("take() counts a place until it is released, and a refused one for nobody", () => {
    const places = new CallPlaces();
    const others = fill(places);
    expect(others).to.have.length(CLIENT_CALLS_MAX);
    expect(fill(places, "a", true)).to.have.length(0);
    for (const release of others) release();
    expect(fill(places, "a", true)).to.have.length(VISITORS_CALLS_MAX);
  });

  it("has room for a call of each socket of an account, and for all requests of its tokens in one window", () => {
    expect(VISITORS_CALLS_MAX).to.be.above(socketsOfAccountMax(SOCKETS_MAX));
    expect(ACCOUNT_CALLS_MAX).to.be.above(REQUESTS_PER_WINDOW * CALLS_OF_REQUEST_MAX);
  });
});
