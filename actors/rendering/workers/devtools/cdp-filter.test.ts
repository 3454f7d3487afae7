import { createRequire } from "node:module";
import { expect } from "chai";
import { isOffered, PAGE_DOMAINS } from "../../../../schemas/rendering/devtools-commands.ts";
import { isForbiddenAddress, judge, openableAddress } from "./cdp-filter.ts";

interface Protocol {
  domains: { domain: string; commands?: { name: string; parameters?: { name: string }[] }[] }[];
}
const require = createRequire(import.meta.url);

/** Words in parameter names which suggest that a command may reach beyond a page. */
const SUSPICIOUS = /path|file|folder|proxy|host|download|url$|process|perfetto|locations/i;
/**
 * Offered commands with such a parameter. Each command was reviewed: its parameter is checked, or the command acts
 * only on pages.
 */
const REVIEWED = [
  ...of("Browser", "setDownloadBehavior"),
  ...of("CacheStorage", "requestCachedResponse requestEntries"),
  ...of("DOM", "pushNodeByPathToFrontend"),
  ...of("DOMDebugger", "removeXHRBreakpoint setXHRBreakpoint"),
  ...of("Fetch", "continueRequest"),
  ...of(
    "Network",
    "deleteCookies emulateNetworkConditions overrideNetworkState setCookie loadNetworkResource",
  ),
  ...of(
    "Page",
    "deleteCookie enable getResourceContent navigate searchInResource setDownloadBehavior addCompilationCache",
  ),
  ...of("ServiceWorker", "skipWaiting startWorker unregister updateRegistration"),
  ...of("Target", "createBrowserContext createTarget"),
  ...of("Tracing", "start"),
  ...of("Debugger", "setBreakpointByUrl"),
  ...of("HeapProfiler", "startTrackingHeapObjects"),
  ...of("Runtime", "compileScript"),
];

function of(domain: string, commands: string): string[] {
  return commands.split(" ").map((command) => `${domain}.${command}`);
}

describe("filter of DevTools commands", () => {
  it("every offered command that names a file, an address or a process was reviewed", () => {
    const found = ["browser_protocol", "js_protocol"].flatMap((file) => {
      const protocol: Protocol = require(`devtools-protocol/json/${file}.json`);
      return protocol.domains.flatMap(({ domain, commands = [] }) =>
        commands
          .filter(({ parameters = [] }) => parameters.some(({ name }) => SUSPICIOUS.test(name)))
          .map(({ name }) => `${domain}.${name}`)
          .filter(isOffered),
      );
    });
    expect(found.toSorted()).to.deep.equal(REVIEWED.toSorted());
  });

  it("every domain of pages is one of the protocol", () => {
    const all = ["browser_protocol", "js_protocol"].flatMap((file) => {
      const protocol: Protocol = require(`devtools-protocol/json/${file}.json`);
      return protocol.domains.map(({ domain }) => domain);
    });
    expect([...PAGE_DOMAINS].filter((domain) => !all.includes(domain))).to.deep.equal([]);
  });

  it("hands the address on as the browser will read it", () => {
    expect(openableAddress(" HTTP://a.example\n/b ")).to.equal("http://a.example/b");
    expect(openableAddress("")).to.equal("");
    for (const url of ["about:blank", "data:,a", "blob:https://a/b", "https://a/"]) {
      expect(openableAddress(url)).to.equal(url);
    }
    for (const url of ["file:///a", "a", "view-source:http://a/", "chrome://a", undefined, 1]) {
      expect(openableAddress(url)).to.equal(undefined);
    }
  });

  it("knows the addresses that no target may have", () => {
    const some = [
      "file:///etc",
      "chrome://gpu",
      "devtools://x",
      "view-source:http://a",
      "FILE:///a",
    ];
    expect(some.filter((url) => !isForbiddenAddress(url))).to.deep.equal([]);
    const others = [
      "http://a/file:",
      "about:blank",
      "",
      "data:,a",
      "chrome-error://chromewebdata/",
    ];
    expect(others.filter(isForbiddenAddress)).to.deep.equal([]);
  });

  it("answers clients that set downloads, and keeps downloads off", () => {
    const set = { behavior: "allowAndName", downloadPath: "/tmp", browserContextId: "A" };
    const expected = { forward: { behavior: "deny", browserContextId: "A" } };
    expect(judge("Browser.setDownloadBehavior", set)).to.deep.equal(expected);
  });

  it("lets a viewer only look", () => {
    expect(judge("Page.startScreencast", { format: "png" }, { isReadOnly: true })).to.deep.equal({
      forward: { format: "png" },
    });
    expect(judge("Page.reload", {}, { isReadOnly: true })).to.have.property("refuse");
  });
});
