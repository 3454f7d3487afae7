import { expect } from "chai";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { APP_FETCH_CONNECTIONS_MAX, AppFetch, appFetchesOfAccountMax } from "./app-fetch.ts";

describe("fetch of apps", () => {
  it("an account whose fetches get no answer leaves room for those of others", async function () {
    this.timeout(120_000);
    const asked: string[] = [];
    await using outside = await startHttpServer(({ url = "" }) => void asked.push(url));
    const policy = createAddressPolicy({ allow: ["127.0.0.0/8"] });
    const fetches = new AppFetch({ guard: createEgressGuard({ policy }) });
    const ended = new AbortController();
    const fetch = (account: string) => {
      const url = `http://${outside.address}:${outside.port}/${account}`;
      const request = { method: "GET", url, headers: [] };
      const asker = { account, signal: ended.signal, comes() {} };
      return fetches.fetch({ type: "fetch", request, redirect: "follow" }, asker).catch(() => {});
    };
    const countOf = (account: string) => asked.filter((url) => url === `/${account}`).length;
    const all = Array.from({ length: APP_FETCH_CONNECTIONS_MAX }, () => fetch("one"));
    await until("the account has its share", () => countOf("one") >= appFetchesOfAccountMax());
    all.push(fetch("other"));
    await until("the other account is served", () => countOf("other") === 1);
    expect(countOf("one")).to.equal(appFetchesOfAccountMax());
    ended.abort();
    await Promise.all(all);
    fetches.close();
  });
});
