import { expect } from "chai";
import { AGENT_RETRY_ATTEMPTS_MAX, AGENT_RETRY_DELAY_MS_MAX, readRetry } from "./retry.ts";

describe("readRetry()", () => {
  it("takes as many tries and as long pauses as the limits say, and refuses more", () => {
    const most = {
      maxAttempts: AGENT_RETRY_ATTEMPTS_MAX,
      baseDelayMs: AGENT_RETRY_DELAY_MS_MAX,
      maxDelayMs: AGENT_RETRY_DELAY_MS_MAX,
    };
    expect(readRetry(most)).to.deep.equal(most);
    for (const [name, value] of Object.entries(most)) {
      expect(() => readRetry({ ...most, [name]: value + 1 }), name).to.throw(
        RangeError,
        `${name} is ${value + 1}`,
      );
    }
    expect(() => readRetry({ maxAttempts: 0 })).to.throw("expected 1 to 1000");
    expect(() => readRetry({ baseDelayMs: 0 })).to.throw("expected more than 0");
    expect(() => readRetry({ baseDelayMs: 2, maxDelayMs: 1 })).to.throw("is above maxDelayMs");
  });
});
