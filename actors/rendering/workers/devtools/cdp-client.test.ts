import { expect } from "chai";
import {
  DEVTOOLS_ATTACHED_MAX,
  DEVTOOLS_COMMANDS_MAX,
  DEVTOOLS_STREAMS_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { findChromium } from "../../../../scripts/tools.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { CdpClient } from "./cdp-client.ts";
import type { CdpMessage, Json } from "./cdp-message.ts";
import { SessionBrowser } from "./session-browser.ts";

describe("client of a session's browser", function () {
  this.timeout(120_000);
  let browser: SessionBrowser;
  let forbidden: string[];
  let written: CdpMessage[];
  let cuts: string[];
  let client: CdpClient;
  let last = 0;

  beforeEach(async () => {
    forbidden = [];
    browser = await SessionBrowser.start({
      executablePath: findChromium(),
      guard: createEgressGuard({ policy: createAddressPolicy({ allow: [], deny: [] }) }),
      bytesMax: 1_000_000,
      clock,
      onForbiddenPage: (url) => forbidden.push(url),
    });
    client = await connect();
  });
  afterEach(() => browser.close());

  async function connect(targetId?: string): Promise<CdpClient> {
    written = [];
    cuts = [];
    return await CdpClient.connect(
      {
        ...{ browser, isReadOnly: false },
        write: (text) => void written.push(JSON.parse(text)),
        endSession() {},
        cutOff: (reason) => void cuts.push(reason),
      },
      targetId,
    );
  }
  function send(method: string, params: Json = {}, sessionId?: string): number {
    last += 1;
    client.take(JSON.stringify({ id: last, method, params, sessionId }));
    return last;
  }
  async function call(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    const id = send(method, params, sessionId);
    const answer = () => written.find((message) => message.id === id);
    await until(`${method} is answered`, () => answer() !== undefined);
    return answer()?.result ?? {};
  }

  it("sees no page of ours while a context is made, though it waits for every page", async () => {
    await call("Target.setDiscoverTargets", { discover: true });
    const attaching = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
    await call("Target.setAutoAttach", attaching);
    const targetOf = ({ params }: CdpMessage) => (params?.targetInfo as Json | undefined)?.targetId;
    const before = written.length;
    // News of the page that was there before may still arrive.
    const known = new Set(written.map(targetOf));
    const { browserContextId } = await call("Target.createBrowserContext", {});
    const events = written.slice(before).filter(({ method }) => method !== undefined);
    expect(events.filter((event) => !known.has(targetOf(event)))).to.deep.equal([]);
    await call("Target.createTarget", { url: "about:blank", browserContextId });
    const attached = written.filter(
      ({ method, params }) =>
        method === "Target.attachedToTarget" &&
        (params?.targetInfo as Json | undefined)?.browserContextId === browserContextId,
    );
    expect(
      attached.map(({ params }) => (params?.targetInfo as Json | undefined)?.type),
    ).to.deep.equal(["page"]);
  });

  it("leaves with everything that it attached to, and makes no trouble for the next", async () => {
    const { browserContextId } = await call("Target.createBrowserContext", {
      disposeOnDetach: true,
    });
    const made = await call("Target.createTarget", { url: "about:blank", browserContextId });
    client.leave();
    await until("its context is gone", async () =>
      (await browser.targets()).every(({ targetId }) => targetId !== made.targetId),
    );
    client = await connect();
    expect((await call("Browser.getVersion")).product).to.contain("Chrome");
  });

  it("has DEVTOOLS_COMMANDS_MAX commands that wait, and is refused one more", async () => {
    const [page] = await browser.targets();
    const attaching = { targetId: page?.targetId, flatten: true };
    const { sessionId } = await call("Target.attachToTarget", attaching);
    const never = { expression: "new Promise(() => {})", awaitPromise: true };
    for (let i = 0; i < DEVTOOLS_COMMANDS_MAX; i++) {
      send("Runtime.evaluate", never, String(sessionId));
    }
    const isRefused = ({ error }: CdpMessage) => error !== undefined;
    expect(written.filter(isRefused)).to.deep.equal([]);
    send("Runtime.evaluate", never, String(sessionId));
    expect(written.filter(isRefused)).to.have.length(1);
  });

  it("has DEVTOOLS_STREAMS_MAX open streams, is refused one more, and gets it when one is closed", async () => {
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
    const print = () =>
      call("Page.printToPDF", { transferMode: "ReturnAsStream" }, String(sessionId));
    const handles: unknown[] = [];
    for (let made = 0; made < DEVTOOLS_STREAMS_MAX; made++) handles.push((await print()).stream);
    expect(new Set(handles).size).to.equal(DEVTOOLS_STREAMS_MAX);
    await print();
    expect(written.at(-1)?.error?.message).to.contain(`${DEVTOOLS_STREAMS_MAX} streams are open`);
    await call("IO.close", { handle: handles[0] }, String(sessionId));
    expect((await print()).stream).to.be.a("string");
  });

  it("attaches to DEVTOOLS_ATTACHED_MAX targets, and is cut off at one more", async () => {
    const [page] = await browser.targets();
    const attaching = { targetId: page?.targetId, flatten: true };
    const attach = () => send("Target.attachToTarget", attaching);
    for (let i = 0; i < DEVTOOLS_ATTACHED_MAX; i++) attach();
    const answers = () => written.filter(({ result }) => result?.sessionId !== undefined).length;
    await until("it is attached", () => answers() === DEVTOOLS_ATTACHED_MAX);
    expect(cuts).to.deep.equal([]);
    attach();
    await until("it is cut off", () => cuts.length > 0);
  });

  it("is cut off when its target closes, and commands that wait are answered", async () => {
    const page = String((await call("Target.createTarget", { url: "about:blank" })).targetId);
    client.leave();
    client = await connect(page);
    await call("Target.setAutoAttach", {
      ...{ autoAttach: true, flatten: true, waitForDebuggerOnStart: false },
    });
    await call("Runtime.evaluate", {
      expression: "globalThis.kept = new Worker(URL.createObjectURL(new Blob(['1']))); 1",
    });
    const worker = await until("the worker is attached", () => {
      const attached = written.find(({ method }) => method === "Target.attachedToTarget");
      return attached && String(attached.params?.sessionId);
    });
    const forever = { expression: "new Promise(() => {})", awaitPromise: true };
    const waiting = [send("Runtime.evaluate", forever), send("Runtime.evaluate", forever, worker)];
    await call("Runtime.evaluate", { expression: "1" });
    expect(cuts).to.deep.equal([]);
    await browser.router.call("Target.closeTarget", { targetId: page });
    await until("the client is cut off", () => cuts.length > 0);
    expect(cuts).to.deep.equal(["the target has closed"]);
    for (const id of waiting) {
      expect(written.find((message) => message.id === id)?.error, String(id)).to.be.an("object");
    }
  });

  it("gets an answer to each command of a session that ends, after the event", async () => {
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
    const forever = { expression: "new Promise(() => {})", awaitPromise: true };
    const waiting = send("Runtime.evaluate", forever, String(sessionId));
    await call("Target.closeTarget", { targetId });
    await until("the command is answered", () => written.some(({ id }) => id === waiting));
    const answered = written.findIndex(({ id }) => id === waiting);
    expect(written[answered]?.error).to.be.an("object");
    const told = written.findIndex(({ method }) => method === "Target.detachedFromTarget");
    expect(told).to.be.within(0, answered - 1);
    expect(cuts).to.deep.equal([]);
  });

  it("a page that no page of a session may be is noticed, should the filter let it through", async () => {
    await browser.router.call("Target.createTarget", { url: "file:///etc/hostname" });
    await until("it is noticed", () => forbidden.length > 0);
    expect(forbidden[0]).to.equal("file:///etc/hostname");
  });
});
