import { expect } from "chai";
import { BLOCKED_PORTS, isBlockedPort } from "./blocked-ports.ts";

describe("blocked ports", () => {
  it("isBlockedPort() refuses what Node's own fetch refuses", async () => {
    for (const port of BLOCKED_PORTS.difference(new Set([0]))) {
      // Node refuses to connect to a blocked port, so the test needs no server there.
      const cause = await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => error.cause);
      expect(cause, String(port)).to.have.property("message", "bad port");
    }
  });

  for (const port of [0, 22, 25, 6000, 10_080]) {
    it(`isBlockedPort() refuses ${port}`, () => expect(isBlockedPort(port)).to.equal(true));
  }

  for (const port of [80, 443, 8080, 8443, 24, 6001, 65_535]) {
    it(`isBlockedPort() lets ${port} through`, () => expect(isBlockedPort(port)).to.equal(false));
  }
});
