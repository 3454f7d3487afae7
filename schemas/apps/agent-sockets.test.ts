import { type Duplex, PassThrough } from "node:stream";
import { expect } from "chai";
import * as ws from "ws";
import { SocketAction } from "./agent-sockets.ts";
import { CLOSE_REASON_BYTES_MAX } from "./close-codes.ts";

/** The library's sending function, which its types do not declare. */
const { Sender } = ws as unknown as {
  Sender: new (out: Duplex) => { close(code: number, reason: string): void };
};

describe("agent-sockets", () => {
  const isTaken = (code: number, reason = "") =>
    SocketAction.safeParse({ to: [1], close: { code, reason } }).success;
  const isSent = (code: number, reason = "") => {
    try {
      new Sender(new PassThrough()).close(code, reason);
      return true;
    } catch {
      return false;
    }
  };

  it("a close accepts only codes that sockets may send", () => {
    for (let code = 0; code <= 5_001; code++) {
      expect(isTaken(code), `${code}`).to.equal(isSent(code));
    }
    expect(isTaken(1000.5)).to.equal(false);
  });

  it("a close reason may have CLOSE_REASON_BYTES_MAX bytes and not one more", () => {
    for (const bytes of [CLOSE_REASON_BYTES_MAX, CLOSE_REASON_BYTES_MAX + 1]) {
      const reason = `é${"x".repeat(bytes - 2)}`;
      expect(isTaken(1000, reason), `${bytes}`).to.equal(isSent(1000, reason));
    }
    expect(isTaken(1000, "x".repeat(CLOSE_REASON_BYTES_MAX))).to.equal(true);
  });
});
