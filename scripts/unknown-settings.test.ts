import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { SETTING_NAMES } from "./settings.ts";
import { needlessSettings, unknownSettings } from "./unknown-settings.ts";

describe("unknown settings", () => {
  it("unknownSettings() names each unknown setting with the nearest known one", () => {
    const environment = { TRUNKLINE_PROT: "1", TRUNKLINE_PUBLIC_ULR: "", HOME: "/", TRUNK: "1" };
    expect(unknownSettings(environment)).to.deep.equal([
      "TRUNKLINE_PROT is no setting and does nothing: is TRUNKLINE_PORT meant?",
      "TRUNKLINE_PUBLIC_ULR is no setting and does nothing: is TRUNKLINE_PUBLIC_URL meant?",
    ]);
  });

  it("unknownSettings() accepts every setting, and those of the bus's configuration", () => {
    const names = ["nats-base", "nats-cluster", "nats-secure"];
    const files = ["nats.conf", ...names.map((name) => `deploy/${name}.conf`)];
    const texts = files.map((file) => readFileSync(join(import.meta.dirname, "..", file), "utf8"));
    const ofBus = texts.join("\n").match(/TRUNKLINE_[A-Z_]+/g) ?? [];
    expect(ofBus).to.include("TRUNKLINE_NATS_LISTEN");
    const known = [...SETTING_NAMES, ...ofBus];
    expect(unknownSettings(Object.fromEntries(known.map((name) => [name, "1"])))).to.deep.equal([]);
  });

  it("needlessSettings() names the secrets key in a process that runs only browsers", () => {
    const warned = (roles: ("gateway" | "actors" | "browser")[], secretsKeys: string[]) =>
      needlessSettings({ roles, secretsKeys });
    expect(warned(["browser"], ["key"])).to.deep.equal([
      "TRUNKLINE_SECRETS_KEY is for the roles gateway and actors: remove it from this process",
    ]);
    expect(warned(["browser"], [])).to.deep.equal([]);
    for (const role of ["gateway", "actors"] as const) {
      expect(warned(["browser", role], ["key"])).to.deep.equal([]);
    }
  });

  it("unknownSettings() accepts the settings of the command line", () => {
    const names = ["TRUNKLINE_API_URL", "TRUNKLINE_API_TOKEN", "TRUNKLINE_ACCOUNT_ID"];
    expect(unknownSettings(Object.fromEntries(names.map((name) => [name, "1"])))).to.deep.equal([]);
  });

  it("unknownSettings() accepts variables that Kubernetes sets for a service", () => {
    const links = {
      TRUNKLINE_GATEWAY_SERVICE_HOST: "10.0.0.1",
      TRUNKLINE_GATEWAY_SERVICE_PORT: "8787",
      TRUNKLINE_GATEWAY_SERVICE_PORT_HTTP: "8787",
      TRUNKLINE_GATEWAY_PORT: "tcp://10.0.0.1:8787",
      TRUNKLINE_GATEWAY_PORT_8787_TCP: "tcp://10.0.0.1:8787",
      TRUNKLINE_GATEWAY_PORT_8787_TCP_ADDR: "10.0.0.1",
    };
    expect(unknownSettings(links)).to.deep.equal([]);
  });
});
