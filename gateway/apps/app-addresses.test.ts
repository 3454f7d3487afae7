import { expect } from "chai";
import {
  calledBaseOf,
  machineUrlOf,
  originOf,
  readAppRequest,
  seenOriginOf,
} from "./app-addresses.ts";
import type { AppPorts } from "./app-ports.ts";

const ACCOUNT = "a".repeat(32);
const addresses = { publicUrl: "https://trunk.example", appsDomain: "apps.example:8443" };
const of = { accountId: ACCOUNT, app: "hooks" };

describe("app-addresses", () => {
  it("machineUrlOf() is below our address, originOf() is the app's own with our scheme", () => {
    expect(machineUrlOf(addresses, of)).to.equal(`https://trunk.example/apps/${ACCOUNT}/hooks`);
    expect(originOf(addresses, of)).to.equal(`https://hooks.${ACCOUNT}.apps.example:8443`);
  });

  it("readAppRequest() finds the app of an address of either sort, and its own path", () => {
    const read = (host: string, url: string) => readAppRequest(addresses, { host, url });
    for (const [url, path] of [
      ["", "/"],
      ["/", "/"],
      ["/a/b?c=/d", "/a/b?c=/d"],
      ["?x", "/?x"],
    ]) {
      const below = read("trunk.example", `/apps/${ACCOUNT}/hooks${url}`);
      expect(below, url).to.deep.equal({ ...of, path, isOwnOrigin: false });
    }
    const own = read(`Hooks.${ACCOUNT}.Apps.Example:8443`, "/healthz?a");
    expect(own).to.deep.equal({ ...of, path: "/healthz?a", isOwnOrigin: true });
  });

  it("on a single machine an app has a port of localhost, which no other name opens", () => {
    const one = { ...of, port: 8_801, cookieKey: "0123456789abcdef" };
    const ports = {
      portOf: ({ app }: { app: string }) => (app === "hooks" ? 8_801 : undefined),
      appAt: (port: number | undefined) => (port === 8_801 ? one : undefined),
    } as unknown as AppPorts;
    const single = { publicUrl: "http://127.0.0.1:8800", appsDomain: "apps.localhost:8800", ports };
    expect(originOf(single, of)).to.equal("http://localhost:8801");
    const other = `http://other.${ACCOUNT}.apps.localhost:8800`;
    expect(originOf(single, { ...of, app: "other" })).to.equal(other);
    const read = (host: string, port: number, url = "/v4/x?y") =>
      readAppRequest(single, { host, url, port });
    const byPort = { ...of, path: "/v4/x?y", isOwnOrigin: true };
    const cookiePrefix = "tl0123456789abcdef-";
    expect(read("LocalHost:8801", 8_801)).to.deep.equal({ ...byPort, cookiePrefix });
    const wrong = ["127.0.0.1:8801", "localhost", "[::1]:8801", "localhost.:8801", "a.test:8801"];
    for (const host of wrong) {
      expect(read(host, 8_801), host).to.deep.include({ app: "", isOwnOrigin: true });
    }
    expect(read("localhost:8801", 8_800)).to.equal(undefined);
    const byDomain = read(`hooks.${ACCOUNT}.apps.localhost:8800`, 8_800);
    expect(byDomain).to.deep.equal(byPort);
    const asked = { ...of, isOwnOrigin: true };
    for (const [request, called, seen] of [
      [{ ...asked, cookiePrefix }, "http://localhost:8801", "http://localhost:8801"],
      [asked, other.replace("other", "hooks"), other.replace("other", "hooks")],
      [{ ...of, isOwnOrigin: false }, machineUrlOf(single, of), "http://localhost:8801"],
    ] as const) {
      expect(calledBaseOf(single, request)).to.equal(called);
      expect(seenOriginOf(single, request)).to.equal(seen);
    }
  });

  it("readAppRequest() leaves the platform's own hosts alone, and takes all hosts below the apps' domain", () => {
    const read = (host: string | undefined, url: string) =>
      readAppRequest(addresses, { host, url });
    const ours = ["/", "/apps", "/apps/", "/apps/x/hooks/", `/apps/${ACCOUNT}/Hooks/`, "/v4/apps/"];
    for (const url of ours) expect(read("trunk.example", url), url).to.equal(undefined);
    expect(read(undefined, "/healthz")).to.equal(undefined);
    for (const host of [`hooks.${ACCOUNT}.apps.example`, `hooks.${ACCOUNT}.apps.example.:80`]) {
      expect(read(host, "/login"), host).to.deep.include({ app: "hooks", isOwnOrigin: true });
    }
    const same = { publicUrl: "https://apps.example", appsDomain: "apps.example" };
    expect(readAppRequest(same, { host: "apps.example", url: "/login" })).to.equal(undefined);
    for (const host of [
      "apps.example:8443",
      "apps.example",
      "x.apps.example:8443",
      `www.hooks.${ACCOUNT}.apps.example:8443`,
      `hooks.${ACCOUNT}x.apps.example:8443`,
    ]) {
      expect(read(host, "/healthz"), host).to.deep.include({ app: "", isOwnOrigin: true });
    }
  });
});
