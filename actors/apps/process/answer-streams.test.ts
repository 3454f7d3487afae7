import { expect } from "chai";
import { APP_STREAMS_MAX } from "../../../schemas/apps/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost, RefusedTurn, wireRequest } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent } from "trunkline/agents";

const events = (source) =>
  new Response(new ReadableStream(source), { headers: { "content-type": "Text/Event-Stream; charset=utf-8" } });

export class Maker extends Agent<any> {
  cancelled = 0;
  held = Promise.withResolvers();
  letGo() { this.held.resolve(); }
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS made (what TEXT)\`; }
  all() { return this.sql\`SELECT what FROM made\`.map(({ what }) => what); }
  count() { return this.cancelled; }
  async onRequest(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/late") {
      await this.held.promise;
      return events({ cancel: () => { this.cancelled += 1; } });
    }
    if (pathname === "/fails") {
      let parts = 0;
      return events({ pull(controller) {
        if (parts++ > 0) throw new Error("after a part");
        controller.enqueue(new Uint8Array([1]));
      } });
    }
    if (pathname === "/write") this.sql\`INSERT INTO made VALUES ('a turn')\`;
    if (pathname === "/text") return events({ start(controller) { controller.enqueue("no bytes"); } });
    return events({
      pull: async (controller) => {
        if (pathname === "/held") await this.held.promise;
        this.sql\`INSERT INTO made VALUES ('a part')\`;
        controller.enqueue(new Uint8Array([1]));
        controller.close();
      },
      cancel: () => { this.cancelled += 1; },
    });
  }
}
const late = Promise.withResolvers();
const unprintable = () => Object.assign(new Error("x"), {
  [Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("no"); },
});
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/late") await late.promise;
    if (pathname === "/release") late.resolve();
    if (pathname === "/unprintable") return events({ pull() { throw unprintable(); } });
    return events({ pull: () => new Promise(() => {}) });
  },
};
`;
const KEY = "Maker/a";

describe("answers that a process is still making", function () {
  this.timeout(60_000);
  let host: MemoryHost;
  const stored: number[] = [];
  let beforeCommit = async (_commit: number) => {};
  beforeEach(async () => {
    beforeCommit = async () => {};
    host = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Maker", className: "Maker" }],
      limits: { turnMs: 200 },
      beforeCommit: (_agent, commit) => beforeCommit(commit),
    });
  });
  afterEach(() => host.stop());

  const begin = async (path: string, id?: string) => {
    const request = await wireRequest(path);
    const result = await host.turn(KEY, { type: "request", request }, id);
    if (result.type !== "answer" || result.answer.stream === undefined) {
      throw new Error("The answer is whole");
    }
    return result.answer.stream;
  };
  const ofEntry = async (path: string) => {
    const result = await host.entryTurn(await wireRequest(path), false);
    if (result.type !== "answer" || result.answer.stream === undefined) {
      throw new Error("The answer is whole");
    }
    return result.answer.stream;
  };
  const refusalOf = async (promise: Promise<unknown>) => {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof RefusedTurn)) throw error ?? new Error("It was not refused");
    return error.error;
  };

  it("no part is seen before the writes that go with it are stored", async () => {
    const stream = await begin("/held");
    const held = Promise.withResolvers<void>();
    beforeCommit = async (commit) => {
      stored.push(commit);
      await held.promise;
    };
    let isSeen = false;
    const part = host.pull(stream).then((pulled) => {
      isSeen = true;
      return pulled;
    });
    const letGo = host.invoke(KEY, "letGo");
    await until("it is written", () => stored.length > 0);
    expect(isSeen).to.equal(false);
    held.resolve();
    await letGo;
    expect(await part).to.deep.equal({ bytes: new Uint8Array([1]) });
    expect(await host.pull(stream)).to.deep.equal({ isEnd: true });
    expect(await host.invoke(KEY, "all")).to.deep.equal(["a part"]);
  });

  it("a turn that wrote is not repeated for a repeated call whose answer is gone", async () => {
    const stream = await begin("/write", "1");
    expect(await host.pull(stream)).to.have.property("bytes");
    expect(await refusalOf(begin("/write", "1"))).to.include({ refusal: "may_have_run" });
    expect(await host.invoke(KEY, "all")).to.deep.equal(["a turn", "a part"]);
  });

  it("a delivery waits for all of it, whatever its kind is", async () => {
    const request = await wireRequest("/write", { method: "POST" });
    const input = { type: "deliver", deliveryId: "d", attempt: 1, request } as const;
    const result = await host.turn(KEY, input, "d");
    expect(result)
      .to.have.nested.property("answer.body")
      .that.deep.equals(new Uint8Array([1]));
  });

  it("an answer that yields no bytes breaks off, and the log says why", async () => {
    const stream = await begin("/text");
    expect(await host.pull(stream)).to.deep.equal({ failed: "the app's code failed" });
    await until("it is in the log", () =>
      host.lines.some(({ text }) => text.includes("a part is no bytes, not bytes")),
    );
  });

  it("an agent is not idle until it has come to its end", async () => {
    const stream = await begin("/read");
    expect(await host.pull(stream)).to.have.property("bytes");
    expect(host.idle.get(KEY)).to.equal(false);
    expect(await host.pull(stream)).to.deep.equal({ isEnd: true });
    await until("it is idle", () => host.idle.get(KEY) === true);
  });

  it("parts that were made before the code failed arrive before the failure", async () => {
    const stream = await begin("/fails");
    expect(await host.pull(stream)).to.deep.equal({ bytes: new Uint8Array([1]) });
    expect(await host.pull(stream)).to.deep.equal({ failed: "the app's code failed" });
  });

  it("an error that cannot be printed ends its stream all the same", async () => {
    const stream = await ofEntry("/unprintable");
    expect(await host.pull(stream)).to.deep.equal({ failed: "the app's code failed" });
    expect(await host.pull(stream)).to.deep.equal({ failed: "nobody makes it any more" });
  });

  it("a turn that took too long makes nothing, and keeps its agent from nothing", async () => {
    expect(await refusalOf(begin("/late"))).to.include({ refusal: "deadline_exceeded" });
    await host.invoke(KEY, "letGo");
    await until("its stream is cancelled", async () => (await host.invoke(KEY, "count")) === 1);
    await until("it is idle", () => host.idle.get(KEY) === true);
  });

  it("APP_STREAMS_MAX answers are made at a time, one more is refused, and a late one takes no place", async () => {
    const late = await wireRequest("/late");
    const turns = Array.from({ length: APP_STREAMS_MAX }, () => host.entryTurn(late, false));
    for (const refusal of await Promise.all(turns.map(refusalOf))) {
      expect(refusal).to.include({ refusal: "deadline_exceeded" });
    }
    // On a busy machine the time limit may also end a turn that answers at once. Such a turn is repeated.
    const inTime = async (path = "/"): Promise<number> => {
      try {
        return await ofEntry(path);
      } catch (error) {
        const isLate = error instanceof RefusedTurn && error.error.refusal === "deadline_exceeded";
        if (!isLate) throw error;
        return inTime(path);
      }
    };
    // From now on the late turns answer.
    await inTime("/release");
    for (let made = 1; made < APP_STREAMS_MAX; made++) await inTime();
    expect(await refusalOf(inTime())).to.include({ refusal: "busy" });
  });
});
