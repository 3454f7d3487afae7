import type { ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { BLOB_CHUNK_BYTES, TASK_TRIES_MAX } from "../../../../schemas/limits.ts";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../../scripts/testing/actor-world.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { EgressAgents } from "../../../egress/egress-fetch.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { JsonChecker } from "../../../rendering/lib/ai/json-checker.ts";
import { JSON_PAGE_CHARS_MAX, JsonExtractor } from "../../../rendering/lib/ai/json-extractor.ts";
import { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { RequestKeyNotOpened } from "../../../rendering/lib/request-keys/request-keys.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import type { JobName } from "../../lib/records/held-jobs.ts";
import { jsonFailure, jsonTask } from "./json-task.ts";

type Ended = () => Promise<AbortSignal>;

const running = new AbortController().signal;
const account = "a".repeat(32);
const url = "https://shop.example/lamp";
const request = CrawlRequest.parse({
  url,
  formats: ["json"],
  jsonOptions: {
    prompt: "The lamp",
    response_format: { type: "json_schema", json_schema: { name: "string" } },
  },
});

describe("jsonTask", function () {
  this.timeout(60_000);
  const guard = createEgressGuard({ policy: createAddressPolicy({ allow: [] }) });
  const agents = new EgressAgents({ guard });
  const checker = new JsonChecker();
  const markdown = new MarkdownPool();
  const markdownPlaces = new Semaphore(1);
  const largePlaces = new FairSemaphore({ places: 1 });
  const reads: string[] = [];
  const signal = new AbortController().signal;
  let world: World;
  let blobs: BlobStore;
  let listening: Awaited<ReturnType<typeof startHttpServer>>;
  let extractor: JsonExtractor;
  let asked: string[];
  let answer: (response: ServerResponse) => void;
  let jobs = 0;

  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, clock);
    listening = await startHttpServer(async (question, response) => {
      asked.push(await text(question));
      answer(response);
    });
    const baseUrl = `http://127.0.0.2:${listening.port}/v1`;
    const operators = { baseUrl, model: "house", key: undefined };
    extractor = new JsonExtractor({ agents, checker, clock, operators });
  });
  beforeEach(() => {
    asked = [];
    answer = says('{"name":"Lamp"}');
  });
  after(async () => {
    agents.close();
    await Promise.all([checker.close(), markdown.close(), listening.close()]);
    await world[Symbol.asyncDispose]();
  });

  const says = (content: string) => (response: ServerResponse) => {
    const choice = { index: 0, message: { role: "assistant", content }, finish_reason: "stop" };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices: [choice] }));
  };

  /** Runs the JSON task of a page, and returns the input of its only message. */
  async function run(page: { job: string; blob: string }, attempt = 1) {
    const send = await sentBy(page, { attempt });
    const [envelope, ...more] = typeof send === "function" ? send() : send;
    expect(more).to.deep.equal([]);
    expect(envelope).to.include({ kind: "crawl-job", key: page.job, message: "jsonExtracted" });
    return envelope?.input as {
      index: number;
      blob?: { name: string; bytes: number };
      reason?: string;
      storedBytes?: number;
    };
  }

  async function sentBy(
    page: { job: string; blob: string },
    {
      attempt = 1,
      ended = async () => running,
      missingKeys = 0,
      waits = [],
    }: { attempt?: number; ended?: Ended; missingKeys?: number; waits?: number[] } = {},
  ) {
    let held = 0;
    let missing = missingKeys;
    let elapsed = 0;
    const waited = {
      monotonic: () => elapsed,
      wait: async (ms: number) => {
        elapsed += ms;
        waits.push(ms);
      },
    };
    const hold = async (name: JobName) => {
      missing -= 1;
      if (missing >= 0) throw new RequestKeyNotOpened("no actors answer");
      held += 1;
      expect(name).to.deep.equal({ account, job: page.job });
      const release = () => {
        held -= 1;
      };
      return { request, ended, release };
    };
    const watched: Pick<BlobStore, "get" | "put" | "size"> = {
      get(name, options) {
        reads.push(name);
        return blobs.get(name, options);
      },
      put: blobs.put.bind(blobs),
      size: blobs.size.bind(blobs),
    };
    const ofAccount: Pick<JsonExtractor, "extract"> = {
      extract(page, question, caller) {
        expect(caller.account).to.equal(account);
        return extractor.extract(page, question, caller);
      },
    };
    const handler = jsonTask({
      ...{ blobs: watched, extractor: ofAccount, markdown, markdownPlaces, largePlaces, hold },
      clock: waited,
    });
    const input = { account, index: 3, url, ...page };
    const context = { id: "t", key: page.job, signal, attempt, deadlineAt: clock.now() + 60_000 };
    try {
      const { send = [] } = await handler(input, context as never);
      return send;
    } finally {
      expect(held).to.equal(0);
    }
  }

  async function stored(members: string) {
    const job = (++jobs).toString(16).padStart(32, "0");
    const blob = `crawl.${job}.3.turn`;
    await blobs.put(blob, Buffer.from(members));
    return { job, blob };
  }

  const streamBytes = async () =>
    (await world.bus.jetstream.streams.info(STREAMS.crawl)).state.bytes;

  async function read(name: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of blobs.get(name)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  it("sends the page's Markdown to the model, and stores the answer in the page's record", async () => {
    const page = await stored('"html":"<h1>No</h1>","markdown":"# Lamp"');
    const name = `crawl.${page.job}.3.json`;
    const json = '"json":{"name":"Lamp"}';
    const before = await streamBytes();
    const { storedBytes = 0, ...extracted } = await run(page);
    expect(extracted).to.deep.equal({ index: 3, blob: { name, bytes: json.length } });
    expect(storedBytes).to.be.closeTo((await streamBytes()) - before, storedBytes / 20);
    expect(await read(name)).to.equal(json);
    expect(asked).to.have.length(1);
    expect(asked[0]).to.contain("# Lamp").and.contain("The lamp").and.not.contain("<h1>");
  });

  it("waits while no host of actors opens the key of the request, and for a minute at most", async () => {
    const page = await stored('"markdown":"A lamp"');
    const waits: number[] = [];
    await sentBy(page, { missingKeys: 3, waits });
    expect([waits, asked.length]).to.deep.equal([[500, 500, 500], 1]);
    const other = await stored('"markdown":"A lamp"');
    const failed = await sentBy(other, { missingKeys: 1_000, waits }).catch(
      (error: unknown) => error,
    );
    expect(failed).to.be.instanceOf(RequestKeyNotOpened);
    expect([waits.length, asked.length]).to.deep.equal([3 + 121, 1]);
  });

  it("makes Markdown if the record has only HTML", async () => {
    await run(await stored('"html":"<h1>Lamp</h1><script>no()</script>"'));
    expect(asked[0]).to.contain("# Lamp").and.not.contain("no()");
  });

  it("waits for a place before it makes Markdown, and releases the place", async () => {
    const page = await stored('"html":"<h1>Lamp</h1>"');
    const giveBack = await markdownPlaces.take(signal);
    const running = run(page);
    await until("it reads the page", () => reads.includes(page.blob));
    expect(asked).to.have.length(0);
    giveBack();
    await running;
    expect(asked).to.have.length(1);
    expect(markdownPlaces.free).to.equal(1);
  });

  it("reads a large page only in a place, and releases it before it calls a model", async () => {
    const text = "a lamp ".repeat(BLOB_CHUNK_BYTES / 7 + 1);
    const large = await stored(`"markdown":"${text}"`);
    const giveBack = await largePlaces.take(account, signal);
    const running = run(large);
    await run(await stored('"markdown":"# Lamp"'));
    expect([reads.includes(large.blob), asked.length]).to.deep.equal([false, 1]);
    const free: number[] = [];
    answer = (response) => {
      free.push(largePlaces.free);
      says('{"name":"Lamp"}')(response);
    };
    giveBack();
    const { reason } = await running;
    expect(reason).to.contain(`the first ${JSON_PAGE_CHARS_MAX} characters`);
    expect(free).to.deep.equal([1]);
    expect(asked[1]).to.contain(text.slice(0, JSON_PAGE_CHARS_MAX));
    expect(asked[1]).not.to.contain(text.slice(0, JSON_PAGE_CHARS_MAX + 1));
  });

  it("calls no model again when it runs twice, and uses the first stored answer", async () => {
    const page = await stored('"markdown":"# Lamp"');
    const { blob } = await run(page);
    answer = says('{"name":"Other"}');
    // The bytes of the earlier answer count, because its report may have been lost.
    const again = { index: 3, blob, storedBytes: blob?.bytes };
    expect(await run(page, 2)).to.deep.equal(again);
    expect(asked).to.have.length(1);

    const beside = await stored('"markdown":"# Lamp"');
    const name = `crawl.${beside.job}.3.json`;
    const earlier = '"json":{"name":"Earlier"}';
    answer = async (response) => {
      await blobs.put(name, Buffer.from(earlier));
      says('{"name":"Later"}')(response);
    };
    expect(await run(beside)).to.deep.include({ blob: { name, bytes: earlier.length } });
    expect(await read(name)).to.equal(earlier);
  });

  it("reports the reason of a model's failure, and retries a temporary one", async () => {
    const page = await stored('"markdown":"# Lamp"');
    answer = (response) => response.writeHead(403).end();
    expect(await run(page)).to.deep.equal({
      index: 3,
      reason: "Cannot extract JSON: the AI model: it answered 403",
    });
    answer = (response) => response.writeHead(429, { "Retry-After": "60" }).end();
    const error = await run(page).catch((thrown: unknown) => thrown);
    expect(error).to.be.an("error").and.not.an.instanceOf(ActorError);
    const last = await run(page, TASK_TRIES_MAX);
    expect(last.reason).to.equal("Cannot extract JSON: the AI model: it answered 429");
  });

  it("calls no model for a page of an ended job, and stops a call when the job ends", async () => {
    const page = await stored('"markdown":"# Lamp"');
    const over = AbortSignal.abort();
    expect(await sentBy(page, { ended: async () => over })).to.deep.equal([]);
    expect(asked).to.have.length(0);

    const ending = new AbortController();
    answer = () => ending.abort();
    expect(await sentBy(page, { ended: async () => ending.signal })).to.deep.equal([]);
    expect(asked).to.have.length(1);
    expect(await blobs.size(`crawl.${page.job}.3.json`)).to.equal(undefined);
  });

  it("retries while the job is unreachable", async () => {
    const page = await stored('"markdown":"# Lamp"');
    const ended = () => Promise.reject(new ActorError("unavailable", "the job is away"));
    const error = await sentBy(page, { ended }).catch((thrown: unknown) => thrown);
    expect(error).to.be.an("error").and.not.an.instanceOf(ActorError);
    expect(asked).to.have.length(0);
  });

  it("is refused if the page is missing or has no text", async () => {
    const gone = await refusalOf(run({ job: "f".repeat(32), blob: "crawl.gone.3.turn" }));
    expect(gone.code).to.equal("not_found");
    const empty = await refusalOf(run(await stored("")));
    expect(empty.message).to.equal("Cannot extract JSON: the page has no text");
  });

  it("reports why it was abandoned", () => {
    const input = { account, job: "b".repeat(32), index: 3, url, blob: "x" };
    const error = new ActorError("internal_error", "x".repeat(2_000));
    const [sent, ...more] = jsonFailure(input, error, { id: "t", key: input.job });
    expect(more).to.deep.equal([]);
    expect(sent).to.deep.include({ kind: "crawl-job", key: input.job, message: "jsonExtracted" });
    expect(sent?.input).to.have.property("index", 3);
    expect(sent?.input)
      .to.have.property("reason")

      .to.match(/^Cannot extract JSON: x+…$/)
      .and.have.length(1_000);
  });
});
