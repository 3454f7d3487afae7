import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { EgressAgents } from "../../../egress/egress-fetch.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { JSON_ANSWER_BYTES_MAX } from "./ai-fetch.ts";
import { REFUSED_SCHEMAS_MAX } from "./ai-model.ts";
import { JsonChecker } from "./json-checker.ts";
import {
  JSON_PAGE_CHARS_MAX,
  JSON_PAGE_MS_MAX,
  JSON_RETRY_MS_MAX,
  JSON_TRY_MS,
  JsonExtractor,
  type JsonExtractorParts,
  type JsonOutcome,
  type JsonQuestion,
} from "./json-extractor.ts";

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" }, price: { type: "number" } },
  required: ["name", "price"],
};
const GOOD = { name: "Lamp", price: 12.5 };
const PAGE = { url: "https://shop.example/lamp", text: "# Lamp\n\n12.50" };
const KEY = "sk-very-secret";

interface Question {
  path: string;
  authorization: string | undefined;
  body: {
    model: string;
    messages: { role: string; content: string }[];
    response_format?: { type: string; json_schema?: { schema: unknown; strict: boolean } };
  };
}

type Answer = (response: ServerResponse, question: Question) => void;

/** A server with the OpenAI-compatible protocol. It sends the prepared answers, one for each request. */
class AiServer {
  readonly questions: Question[] = [];
  answers: Answer[] = [];

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await text(request));
    const { url: path = "", headers } = request;
    const question = { path, authorization: headers.authorization, body };
    this.questions.push(question);
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    response.setHeader("Content-Type", "application/json");
    answer?.(response, question);
  }
}

const says =
  (content: string): Answer =>
  (response) => {
    const choice = { index: 0, message: { role: "assistant", content }, finish_reason: "stop" };
    response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices: [choice] }));
  };
const refuses =
  (status: number, headers: Record<string, string> = {}, message = "no"): Answer =>
  (response) => {
    response.writeHead(status, headers).end(JSON.stringify({ error: { message } }));
  };
const good = says(JSON.stringify(GOOD));

describe("JsonExtractor", function () {
  this.timeout(60_000);
  const guard = createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }) });
  const agents = new EgressAgents({ guard });
  const checker = new JsonChecker();
  const caller = { account: "a", signal: new AbortController().signal };
  let server: AiServer;
  let listening: Awaited<ReturnType<typeof startHttpServer>>;
  let providers: Record<string, string>;

  before(async () => {
    listening = await startHttpServer((request, response) => {
      void server.answer(request, response);
    });
    const base = `http://127.0.0.2:${listening.port}`;
    providers = { one: `${base}/one/v1`, two: `${base}/two/v1` };
  });
  beforeEach(() => {
    server = new AiServer();
  });
  after(async () => {
    agents.close();
    await Promise.all([checker.close(), listening.close()]);
  });

  const customAi = [{ model: "one/big/model", authorization: KEY }];
  const both = [...customAi, { model: "two/small", authorization: `Bearer ${KEY}2` }];

  function extract(
    answers: Answer[],
    question: JsonQuestion = {},
    parts: Partial<JsonExtractorParts> = {},
    page = PAGE,
  ) {
    server.answers = answers;
    const extractor = new JsonExtractor({
      agents,
      checker,
      clock: systemClock,
      providers,
      ...parts,
    });
    return extractor.extract(page, { schema: SCHEMA, customAi, ...question }, caller);
  }
  const operators = () => ({
    baseUrl: providers.one ?? "",
    model: "house",
    key: undefined,
  });

  it("extract() sends prompt, schema and page, and returns the model's answer", async () => {
    const outcome = await extract([good], { prompt: "The lamp, please" });
    expect(outcome).to.deep.equal({ kind: "extracted", json: JSON.stringify(GOOD) });
    const [question] = server.questions;
    expect(question?.path).to.equal("/one/v1/chat/completions");
    expect(question?.authorization).to.equal(`Bearer ${KEY}`);
    expect(question?.body.model).to.equal("big/model");
    expect(question?.body.response_format).to.deep.include({ type: "json_schema" });
    expect(question?.body.response_format?.json_schema).to.deep.include({
      schema: SCHEMA,
      strict: false,
    });
    const said = JSON.stringify(question?.body.messages);
    for (const part of ["The lamp, please", PAGE.url, "12.50", "price"])
      expect(said).to.contain(part);
  });

  it("extract() accepts any object if there is no schema", async () => {
    const question = { schema: undefined, prompt: "Anything" };
    expect(await extract([says('{"a":[1]}')], question)).to.have.property("json", '{"a":[1]}');
    expect(await extract([says("[1]")], question)).to.have.property("kind", "failed");
  });

  it("extract() reads answers in code fences, between text and after reasoning", async () => {
    const json = JSON.stringify(GOOD, undefined, 2);
    for (const around of [
      `\`\`\`json\n${json}\n\`\`\``,
      `Here you are:\n\n\`\`\`\n${json}\n\`\`\`\nAnything else?`,
      `Here you are: ${json} Anything else?`,
      `<think>It costs {12}</think>${json}`,
    ]) {
      expect(await extract([says(around)]), around).to.have.property("json", JSON.stringify(GOOD));
    }
    expect(server.questions, "none of them twice").to.have.length(4);
  });

  it("extract() repeats the request with the errors of an invalid answer", async () => {
    const outcome = await extract([says('{"name":"Lamp","price":"oops"}'), good]);
    expect(outcome).to.have.property("json", JSON.stringify(GOOD));
    const messages = server.questions[1]?.body.messages ?? [];
    expect(messages.map(({ role }) => role)).to.deep.equal(["system", "user", "assistant", "user"]);
    expect(messages[2]?.content).to.contain("oops");
    expect(messages[3]?.content).to.contain("/price must be number");
  });

  it("extract() reports the errors when the second answer is invalid too, and sends no third request", async () => {
    const outcome = await extract([says("I will not"), says('{"name":1}')]);
    expect(outcome).to.deep.include({ kind: "failed", retry: false });
    expect(outcome.reason).to.match(
      /^Cannot extract JSON: one\/big\/model: its answer does not match the schema: .*price/,
    );
    expect(server.questions).to.have.length(2);
  });

  it("extract() tries the next model when one fails", async () => {
    const outcome = await extract([refuses(401), good], { customAi: both });
    expect(outcome).to.have.property("json", JSON.stringify(GOOD));
    expect(server.questions.map(({ path }) => path)).to.deep.equal([
      "/one/v1/chat/completions",
      "/two/v1/chat/completions",
    ]);
    expect(server.questions[1]?.authorization).to.equal(`Bearer ${KEY}2`);
  });

  it("extract() describes the schema in the prompt for a server without schema support, and remembers that server", async () => {
    const extractor = new JsonExtractor({ agents, checker, clock: systemClock, providers });
    server.answers = [
      (response, question) =>
        question.body.response_format ? refuses(400)(response, question) : good(response, question),
    ];
    for (const questions of [2, 3]) {
      const outcome = await extractor.extract(PAGE, { schema: SCHEMA, customAi }, caller);
      expect(outcome).to.have.property("kind", "extracted");
      expect(server.questions).to.have.length(questions);
    }
  });

  it("extract() sends the schemas of other questions to a model that has refused one", async () => {
    const extractor = new JsonExtractor({ agents, checker, clock: systemClock, providers });
    const list = { type: "array", items: SCHEMA };
    server.answers = [
      (response, question) => {
        const sent = question.body.response_format?.json_schema?.schema;
        if ((sent as typeof list | undefined)?.type === "array") refuses(400)(response, question);
        else says(JSON.stringify(sent === undefined ? [GOOD] : GOOD))(response, question);
      },
    ];
    const schemasOf = async (schema: object) => {
      const before = server.questions.length;
      const outcome = await extractor.extract(PAGE, { schema: { ...schema }, customAi }, caller);
      expect(outcome).to.have.property("kind", "extracted");
      const questions = server.questions.slice(before);
      return questions.map(({ body }) => body.response_format?.json_schema?.schema);
    };
    expect(await schemasOf(list)).to.deep.equal([list, undefined]);
    expect(await schemasOf(SCHEMA)).to.deep.equal([SCHEMA]);
    expect(await schemasOf(list)).to.deep.equal([undefined]);
  });

  it("extract() waits the Retry-After of a busy model, unless it is too long", async () => {
    const startedAt = performance.now();
    const waited = await extract([refuses(429, { "Retry-After": "1" }), good]);
    expect(waited).to.have.property("kind", "extracted");
    expect(performance.now() - startedAt).to.be.at.least(1_000);

    const refused = await extract([refuses(429, { "Retry-After": "21" })]);
    expect(refused).to.deep.equal({
      kind: "failed",
      reason: "Cannot extract JSON: one/big/model: it answered 429: no",
      retry: true,
    });
    expect(server.questions).to.have.length(3);
  });

  it("extract() tries twice at a server error, and reports it as temporary", async () => {
    const outcome = await extract([refuses(500)]);
    expect(outcome).to.deep.include({ kind: "failed", retry: true });
    expect(server.questions).to.have.length(2);
    // If one model fails permanently, a retry of the task is useless.
    const mixed = await extract([refuses(500), refuses(500), refuses(403)], { customAi: both });
    expect(mixed).to.deep.include({ kind: "failed", retry: false });
  });

  it("extract() abandons a model that does not answer", async () => {
    const silent: Answer = () => {};
    const clock = new SkippingClock();
    const extracted = extract([silent, good], { customAi: both }, { clock });
    await until("the first is asked", () => server.questions.length === 1);
    clock.skip(JSON_TRY_MS);
    expect(await extracted).to.have.property("kind", "extracted");
    const dripping: Answer = (response) => {
      const timer = setInterval(() => response.write(" "), 20);
      response.once("close", () => clearInterval(timer));
    };
    const left = await extract([dripping], {}, { tryMs: 1_500 });
    expect(left.reason).to.contain("it did not answer in 1500 ms");
    const inside = await extract(
      [dripping],
      { customAi: [] },
      { tryMs: 1_500, operators: operators() },
    );
    expect(inside.reason).to.contain("it did not answer in 1500 ms");
  });

  it("extract() remembers the latest REFUSED_SCHEMAS_MAX servers without schema support", async () => {
    const plain: Answer = (response, question) =>
      (question.body.response_format?.type === "json_schema" ? refuses(400) : good)(
        response,
        question,
      );
    server.answers = [plain];
    const extractor = new JsonExtractor({ agents, checker, clock: systemClock, providers });
    const questionsFor = async (number: number) => {
      const before = server.questions.length;
      const models = [{ model: `one/${number}`, authorization: KEY }];
      await extractor.extract(PAGE, { schema: SCHEMA, customAi: models }, caller);
      return server.questions.length - before;
    };
    for (let number = 0; number < REFUSED_SCHEMAS_MAX; number++) await questionsFor(number);
    expect(await questionsFor(0)).to.equal(1);
    expect(await questionsFor(REFUSED_SCHEMAS_MAX)).to.equal(2);
    expect(await questionsFor(1)).to.equal(1);
    expect(await questionsFor(0)).to.equal(2);
  });

  describe("extract() gives up", () => {
    const silent: Answer = () => {};
    const SOON_MS = 20_000;
    let clock: SkippingClock;
    let outcome: JsonOutcome | undefined;
    beforeEach(() => {
      clock = new SkippingClock();
      outcome = undefined;
    });

    function begin(answers: Answer[], models: JsonQuestion["customAi"] = customAi) {
      return extract(answers, { customAi: models }, { clock }).then((given) => {
        outcome = given;
      });
    }
    const asked = (count: number) =>
      until(`${count} questions`, () => server.questions.length === count);
    async function skip(ms: number) {
      clock.skip(ms);
      await turn();
    }

    it("a model after JSON_TRY_MS, and not before", async () => {
      const ended = begin([silent]);
      await asked(1);
      await skip(JSON_TRY_MS - SOON_MS);
      expect(outcome).to.equal(undefined);
      await skip(SOON_MS);
      await ended;
      expect(outcome?.reason).to.contain(`it did not answer in ${JSON_TRY_MS} ms`);
      // No retry: a repeated task would wait just as long again.
      expect(outcome).to.include({ kind: "failed", retry: false });
    });

    it("all models together after JSON_PAGE_MS_MAX, and not before", async () => {
      const models = Array.from({ length: 9 }, () => customAi).flat();
      const ended = begin([silent], models);
      const tries = JSON_PAGE_MS_MAX / JSON_TRY_MS;
      for (let tried = 1; tried < tries; tried++) {
        await asked(tried);
        await skip(JSON_TRY_MS);
      }
      await asked(tries);
      // The timeout of all models ends slightly before the timeout of the last model.
      await skip(JSON_TRY_MS - SOON_MS);
      expect(outcome).to.equal(undefined);
      await skip(SOON_MS);
      await ended;
      expect(outcome).to.include({ kind: "failed" });
      expect(outcome?.reason).to.contain(`no answer in ${JSON_PAGE_MS_MAX} ms`);
      expect(server.questions).to.have.length(tries);
    });

    it("at once a model whose Retry-After exceeds JSON_RETRY_MS_MAX", async () => {
      const busy = (ms: number) => refuses(429, { "Retry-After": String(ms / 1_000) });
      const ended = begin([busy(JSON_RETRY_MS_MAX), good]);
      await until("it waits", () => clock.isAwaited(JSON_RETRY_MS_MAX));
      await skip(JSON_RETRY_MS_MAX);
      await ended;
      expect(outcome).to.have.property("kind", "extracted");
      await begin([busy(JSON_RETRY_MS_MAX + 1_000), good], both);
      expect(outcome).to.have.property("kind", "extracted");
      expect(server.questions.map(({ body }) => body.model).slice(-2)).to.deep.equal([
        ...["big/model", "small"],
      ]);
    });
  });

  it("extract() refuses answers past the size limit, from providers and the operator's endpoint", async () => {
    const huge: Answer = (response) => {
      response.write('{"a":"');
      response.end("x".repeat(JSON_ANSWER_BYTES_MAX));
    };
    const outcome = await extract([huge]);
    expect(outcome.reason).to.contain(`larger than ${JSON_ANSWER_BYTES_MAX} bytes`);
    const inside = await extract([huge], { customAi: [] }, { operators: operators() });
    expect(inside.reason).to.contain(`larger than ${JSON_ANSWER_BYTES_MAX} bytes`);
  });

  it("extract() reports a failed connection as a temporary fault", async () => {
    const cut: Answer = (response) => {
      response.write("{");
      setImmediate(() => response.destroy());
    };
    const outside = await extract([cut]);
    expect(outside).to.deep.include({ kind: "failed", retry: true });
    const house = { customAi: [] };
    const inside = await extract([cut], house, { operators: operators() });
    expect(inside).to.deep.include({ kind: "failed", retry: true });
    const baseUrl = "http://127.0.0.2:9";
    const dead = await extract([cut], house, { operators: { ...operators(), baseUrl } });
    expect(dead).to.deep.include({ retry: true });
    expect(dead.reason).to.contain("the connection to it failed");
  });

  it("extract() reports a response that does not follow the protocol", async () => {
    for (const answer of ["<html>", "{}", '{"choices":[]}', "null", ""]) {
      const outcome = await extract([(response) => response.end(answer)]);
      expect(outcome.reason, answer).to.contain("no answer in the OpenAI-compatible protocol");
    }
    const moved = await extract([refuses(302, { Location: "https://elsewhere.example/" })]);
    expect(moved.reason).to.contain("it answered 302");
  });

  it("extract() never repeats a key from a provider's text, nor any text of an internal service", async () => {
    const told = `Incorrect API key "${KEY}"`;
    const outcome = await extract([refuses(401, {}, told)]);
    expect(outcome.reason).to.contain('it answered 401: Incorrect API key "…"');
    expect(JSON.stringify(outcome)).not.to.contain(KEY);
    const inside = await extract(
      [refuses(401, {}, "host 10.1.2.3 says no")],
      { customAi: [] },
      { operators: { ...operators(), key: KEY } },
    );
    expect(server.questions.at(-1)?.authorization).to.equal(`Bearer ${KEY}`);
    expect(inside.reason).to.equal("Cannot extract JSON: the AI model: it answered 401");
  });

  it("extract() reaches users' providers only through the egress guard, and the operator's endpoint as configured", async () => {
    const closed = new EgressAgents({
      guard: createEgressGuard({ policy: createAddressPolicy({ allow: [] }) }),
    });
    const outcome = await extract([good], {}, { agents: closed });
    expect(outcome.reason).to.contain("its address is not one this service fetches");
    expect(server.questions).to.have.length(0);
    const inside = await extract(
      [good],
      { customAi: [] },
      { agents: closed, operators: operators() },
    );
    expect(inside).to.have.property("kind", "extracted");
    expect(server.questions[0]?.authorization).to.equal(undefined);
    closed.close();
  });

  it("extract() sends no request if there is no model or the schema is unusable", async () => {
    const none = await extract([good], { customAi: [] });
    expect(none.reason).to.equal("Cannot extract JSON: no AI model is configured");
    const bad = await extract([good], { schema: { $ref: "#/$defs/missing" } });
    expect(bad.reason).to.match(/^Cannot extract JSON: the schema cannot be used: can't resolve/);
    expect(server.questions).to.have.length(0);
  });

  it("extract() truncates a long page for the model, and tells the model so", async () => {
    const page = (chars: number) => ({ url: PAGE.url, text: "x".repeat(chars) });
    const whole = await extract([good], {}, {}, page(JSON_PAGE_CHARS_MAX));
    expect(whole).not.to.have.property("reason");
    const cut = await extract([good], {}, {}, page(JSON_PAGE_CHARS_MAX + 1));
    expect(cut).to.have.property(
      "reason",
      `The JSON was made of the first ${JSON_PAGE_CHARS_MAX} characters of the page`,
    );
    const lengths = server.questions.map(({ body }) => body.messages[1]?.content.length);
    expect(lengths[0]).to.equal(lengths[1]);
  });

  it("extract() ends when its signal aborts", async () => {
    const leaving = new AbortController();
    const gone = new Error("gone");
    server.answers = [() => leaving.abort(gone)];
    const extractor = new JsonExtractor({ agents, checker, clock: systemClock, providers });
    const error = await extractor
      .extract(PAGE, { schema: SCHEMA, customAi: both }, { ...caller, signal: leaving.signal })
      .catch((thrown: unknown) => thrown);
    expect(error).to.equal(gone);
    expect(server.questions).to.have.length(1);
  });
});
