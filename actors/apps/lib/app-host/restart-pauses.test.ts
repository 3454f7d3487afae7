import { expect } from "chai";
import {
  APP_RESTART_MS,
  APP_RESTART_MS_MAX,
  APP_STABLE_MS,
  RestartPauses,
} from "./restart-pauses.ts";

describe("RestartPauses", () => {
  function open() {
    const time = { ms: 0 };
    const pauses = new RestartPauses({ monotonic: () => time.ms });
    /** Fails once the pause is over, and returns the next pause. */
    const fail = (revision = 1) => {
      time.ms += Math.max(0, pauses.leftMs("app", revision));
      pauses.putOff("app", revision);
      return pauses.leftMs("app", revision);
    };
    return { time, pauses, fail };
  }

  it("there is none after the first failure, and then they double up to the longest", () => {
    const { fail } = open();
    expect([fail(), fail(), fail(), fail()]).to.deep.equal([
      0,
      APP_RESTART_MS,
      2 * APP_RESTART_MS,
      4 * APP_RESTART_MS,
    ]);
    for (let count = 0; count < 2_000; count++) fail();
    expect(fail()).to.equal(APP_RESTART_MS_MAX);
  });

  it("begin anew for another revision, and after a stable time, but not a moment earlier", () => {
    const { time, fail } = open();
    fail();
    expect(fail()).to.equal(APP_RESTART_MS);
    expect(fail(2)).to.equal(0);
    time.ms += APP_STABLE_MS;
    expect(fail(2)).to.equal(APP_RESTART_MS);
    time.ms += APP_RESTART_MS + APP_STABLE_MS + 1;
    expect(fail(2)).to.equal(0);
  });

  it("sweep() forgets apps that have been stable", () => {
    const { time, pauses, fail } = open();
    fail();
    fail();
    time.ms += APP_RESTART_MS + APP_STABLE_MS;
    pauses.sweep();
    expect(pauses.leftMs("app", 1)).to.be.lessThan(0);
    time.ms += 1;
    pauses.sweep();
    expect(pauses.leftMs("app", 1)).to.equal(0);
  });
});
