import { expect } from "chai";
import { pino } from "pino";
import { refusal } from "../../scripts/testing/refusal.ts";
import { SOCKETS_MAX, SocketPlaces, socketsOfAccountMax } from "./socket-places.ts";

describe("places of sockets", () => {
  it("one account has three quarters of all sockets, and several accounts leave room for one more", () => {
    const places = new SocketPlaces({});
    const all = (account: string) => {
      let taken = -1;
      const { code } = refusal(() => {
        for (;;) {
          taken += 1;
          places.tryTake()?.countFor(account);
        }
      });
      expect(code).to.equal("busy");
      return taken;
    };
    expect(socketsOfAccountMax(SOCKETS_MAX)).to.equal(7_500);
    expect(["a", "b", "c", "d"].map(all)).to.deep.equal([7_500, 1_875, 469, 117]);
  });

  it("a router with one socket gives it to any account", () => {
    const places = new SocketPlaces({ max: 1 });
    const place = places.tryTake();
    place?.countFor("a");
    expect(places.tryTake()).to.equal(undefined);
    place?.end();
    expect(places.tryTake()).to.not.equal(undefined);
  });

  it("countFor() moves the place to another account, and counts none twice", () => {
    const places = new SocketPlaces({ max: 2 });
    const place = places.tryTake();
    for (const account of ["a", "a", "b"]) place?.countFor(account);
    const other = places.tryTake();
    expect(other).to.not.equal(undefined);
    other?.countFor("a");
    expect(places.tryTake()).to.equal(undefined);
  });

  it("countFor() refuses after the end, so that no place is lost", () => {
    const places = new SocketPlaces({ max: 1 });
    const place = places.tryTake();
    place?.end();
    expect(refusal(() => place?.countFor("a")).code).to.equal("cancelled");
    expect(places.tryTake()).to.not.equal(undefined);
  });

  it("countFor() logs once a minute which account has its share", () => {
    const lines: string[] = [];
    const logger = pino({}, { write: (line) => lines.push(JSON.parse(line).account) });
    let now = 0;
    const places = new SocketPlaces({ max: 4, logger, now: () => now });
    const refused = (account: string) => {
      const { message } = refusal(() => {
        for (;;) places.tryTake()?.countFor(account);
      });
      expect(message).to.include("has its share");
    };
    refused("a");
    refused("a");
    now += 59_999;
    refused("a");
    expect(lines).to.deep.equal(["a"]);
    now += 1;
    refused("a");
    expect(lines).to.deep.equal(["a", "a"]);
  });
});
