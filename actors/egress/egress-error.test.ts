import { expect } from "chai";
import { ERRORS } from "../../schemas/errors.ts";
import { EgressError, systemError, toEgressError } from "./egress-error.ts";

describe("EgressError", () => {
  const codes = [
    ["ENOTFOUND", "name_not_resolved"],
    ["EAI_AGAIN", "name_not_resolved"],
    ["ECONNREFUSED", "connection_refused"],
    ["EHOSTUNREACH", "address_unreachable"],
    ["ENETUNREACH", "address_unreachable"],
    ["ECONNRESET", "connection_closed"],
    ["EPIPE", "connection_closed"],
    ["ETIMEDOUT", "navigation_timed_out"],
    ["CERT_HAS_EXPIRED", "certificate_invalid"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate_invalid"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate_invalid"],
    ["HPE_INVALID_CONSTANT", "network_failed"],
    ["", "network_failed"],
  ] as const;
  for (const [systemCode, code] of codes) {
    it(`toEgressError() maps ${systemCode || "any other code"} to ${code}, and keeps the detail for the log`, () => {
      const cause = systemError(systemCode, "10.0.0.1:80");
      const error = toEgressError(cause, "name.test");
      expect(error).to.include({ code, detail: `${systemCode} 10.0.0.1:80`, cause });
      expect(error.message)
        .to.match(/^Cannot fetch from name\.test: /)
        .and.not.include("10.0.0.1");
      expect(ERRORS[error.code].status).to.equal(422);
    });
  }

  it("toEgressError() maps a signal's timeout to navigation_timed_out", () => {
    const timeout = new DOMException("late", "TimeoutError");
    expect(toEgressError(timeout, "name.test")).to.include({ code: "navigation_timed_out" });
  });

  it("toEgressError() leaves an EgressError as it is", () => {
    const error = new EgressError("address_refused", "Cannot fetch", "why");
    expect(toEgressError(error, "name.test")).to.equal(error);
  });
});
