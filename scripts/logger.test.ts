import { expect } from "chai";
import { OutcomeUnknown } from "../actors/runtime/bus/atomic-batch.ts";
import { BusLost } from "../actors/runtime/bus/bus.ts";
import { inRequest, recordSteps } from "../actors/runtime/lib/trace.ts";
import { ActorError } from "../schemas/errors.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";

describe("createLogger()", () => {
  const logged = (
    options: LoggerOptions,
    log: (logger: ReturnType<typeof createLogger>) => void,
  ) => {
    const lines: string[] = [];
    log(createLogger({ ...options, write: (line) => void lines.push(line) }));
    return lines;
  };

  it("writes readable lines on a terminal, and JSON elsewhere", () => {
    const say = (isReadable: boolean) =>
      logged({ isReadable }, (logger) =>
        logger.info({ role: "gateway", port: 80 }, "role started"),
      );
    const [json = ""] = say(false);
    expect(JSON.parse(json)).to.include({ level: 30, role: "gateway", msg: "role started" });
    expect(say(true)[0]).to.match(/^\d\d:\d\d:\d\d INFO {2}role started role=gateway port=80\n$/);
  });

  it("writes only entries of its level", () => {
    const say = (level: "debug" | "warn") =>
      logged({ level, isReadable: true }, (logger) => {
        logger.debug({}, "detail");
        logger.info({}, "news");
        logger.warn({}, "trouble");
      }).length;
    expect([say("debug"), say("warn")]).to.deep.equal([3, 1]);
  });

  it("shows no stack of expected errors, and the stack of every fault", () => {
    const show = (err: Error, isReadable: boolean) =>
      logged({ isReadable }, (logger) => logger.warn({ err }, "failed"))[0] ?? "";
    const refusal = new ActorError("not_found", "Cannot find it");
    expect(show(refusal, false)).to.include("Cannot find it").and.not.include("logger.test.ts");
    expect(show(refusal, true)).to.match(/ WARN {2}failed: Cannot find it\n$/);
    for (const isReadable of [true, false]) {
      expect(show(new RangeError("a fault"), isReadable)).to.include("logger.test.ts");
    }
  });

  it("logs failures caused by a lost bus at level debug", () => {
    const lost = new BusLost("Cannot reach the bus: disconnected");
    const errors = [lost, new OutcomeUnknown("Cannot tell", { cause: lost })];
    const say = (level: "debug" | "info") =>
      logged({ level, isReadable: true }, (logger) => {
        for (const err of errors) logger.warn({ err }, "lease not renewed");
        logger.warn({ err: new OutcomeUnknown("Cannot tell") }, "commit outcome unknown");
      });
    expect(say("info")).to.have.length(1);
    expect(say("debug").map((line) => / [A-Z]+/.exec(line)?.[0])).to.deep.equal([
      ...[" DEBUG", " DEBUG", " WARN"],
    ]);
  });

  it("names the request of a line, and records the line as a step of it, but not its own line", () => {
    const lines: string[] = [];
    const steps: unknown[] = [];
    const stop = recordSteps(({ at: _, ...step }) => steps.push(step));
    const logger = createLogger({ isReadable: false, write: (line) => lines.push(line) });
    logger.warn({}, "outside");
    inRequest("a1", "asked", () => {
      logger.error({ err: new Error("reason") }, "inside");
      logger.child({ requestId: "asked" }).info({}, "request");
      logger.debug({}, "too small");
    });
    stop();
    expect(lines.map((line) => JSON.parse(line).requestId)).to.deep.equal([
      undefined,
      "asked",
      "asked",
    ]);
    expect(lines.at(-1)?.match(/requestId/g)).to.have.length(1);
    const of = { run: "a1", request: "asked", way: "log", ms: 0 };
    expect(steps).to.deep.equal([{ ...of, name: "inside", level: "error", error: "reason" }]);
  });
});
