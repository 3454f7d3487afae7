import { expect } from "chai";
import { machineUrlOf, originOf, readAppRequest } from "./app-addresses.ts";

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

  it("readAppRequest() leaves what is ours, and gives nobody else what is below the apps' domain", () => {
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
