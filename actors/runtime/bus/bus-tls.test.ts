import type { PeerCertificate } from "node:tls";
import { AuthorizationError } from "@nats-io/transport-node";
import { expect } from "chai";
import { connectProblem, tlsOptions } from "./bus-tls.ts";

describe("TLS to the bus", () => {
  const identity = (servers: string[], subjectaltname: string) => {
    const certificate = { subject: { CN: "bus" }, subjectaltname } as PeerCertificate;
    return tlsOptions({ caFile: "ca.pem" }, servers)?.checkServerIdentity("localhost", certificate);
  };

  it("tlsOptions() requires TLS if the settings do, and otherwise leaves it to the server", () => {
    expect(tlsOptions(undefined, ["nats://a:4222"])).to.equal(undefined);
    expect(tlsOptions(undefined, ["nats://a:4222", "tls://b:4222"])).to.be.an("object");
    expect(tlsOptions({ caFile: "ca.pem" }, ["nats://a:4222"])).to.include({ caFile: "ca.pem" });
  });

  it("tlsOptions() accepts certificates for one of the configured servers, by name or address", () => {
    expect(identity(["nats://a:4222", "nats://b:4222"], "DNS:b")).to.equal(undefined);
    expect(identity(["nats://10.0.0.5:4222"], "IP Address:10.0.0.5")).to.equal(undefined);
    expect(identity(["nats://[fd00::5]:4222"], "IP Address:FD00:0:0:0:0:0:0:5")).to.equal(
      undefined,
    );
    expect(identity(["nats://10.0.0.5:4222"], "DNS:localhost")).to.be.an("error");
    expect(identity(["nats://a:4222"], "DNS:b, IP Address:10.0.0.5")).to.be.an("error");
  });

  it("connectProblem() describes the fault of a certificate, also as the cause of another error", () => {
    const error = (code: string) =>
      new Error("failed", { cause: Object.assign(new Error("x"), { code }) });
    const texts: [string, RegExp][] = [
      ["CERT_HAS_EXPIRED", /^the server's certificate has expired$/],
      ["CERT_NOT_YET_VALID", /compare the clocks$/],
      ["SELF_SIGNED_CERT_IN_CHAIN", /^the server's certificate is not trusted .*TRUNKLINE_NATS_CA/],
      ["ERR_TLS_CERT_ALTNAME_INVALID", /other names than TRUNKLINE_NATS_URL has$/],
      ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", /^the server refuses TRUNKLINE_NATS_CERT/],
      ["ECONNREFUSED", /^failed$/],
    ];
    for (const [code, text] of texts) expect(connectProblem(error(code)), code).to.match(text);
    expect(connectProblem("text")).to.equal("text");
    const late = new AuthorizationError("Authentication Timeout");
    expect(connectProblem(late)).to.equal("this process was too slow to log in");
  });
});
