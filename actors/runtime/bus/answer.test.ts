import { expect } from "chai";
import pino from "pino";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { answerOn } from "./answer.ts";
import { type Asked, ask } from "./ask.ts";
import { Bus } from "./bus.ts";

/** How long a test waits before it concludes that no answer comes. */
const SILENCE_MS = 200;

type Answered = Extract<Asked, object>;

describe("answerOn", function () {
  this.timeout(60_000);

  it("goes on when an answer throws or rejects, and sends no answer then", async () => {
    await using nats = await startNats();
    await using started = new AsyncDisposableStack();
    const bus = await connect(nats.url, started);
    const failed: string[] = [];
    const logger = pino({}, { write: (line) => failed.push(JSON.parse(line).err.message) });
    const leave = answerOn({ bus, logger }, "question", (payload) => {
      if (payload === "throw") throw new Error("thrown");
      return payload === "reject" ? Promise.reject(new Error("rejected")) : `${payload}!`;
    });
    const told = async (payload: string, timeoutMs = SILENCE_MS) => {
      const heard = await ask(bus, "question", payload, { timeoutMs });
      return typeof heard === "string" ? heard : heard.answer.string();
    };
    expect(await told("throw")).to.equal("silence");
    expect(await told("reject")).to.equal("silence");
    expect(await told("well", 20_000)).to.equal("well!");
    expect(failed).to.deep.equal(["thrown", "rejected"]);
    leave();
  });

  it("answers to inboxes alone, not to a subject that a stream may store", async () => {
    await using nats = await startNats();
    await using started = new AsyncDisposableStack();
    const bus = await connect(nats.url, started);
    const stored: string[] = [];
    bus.connection.subscribe("state.>", { callback: (_, msg) => void stored.push(msg.subject) });
    answerOn({ bus, logger: pino({ level: "silent" }) }, "question", (payload) => `${payload}!`);
    bus.connection.publish("question", "planted", { reply: "state.key" });
    const { answer } = (await ask(bus, "question", "well", { timeoutMs: 20_000 })) as Answered;
    expect(answer.string()).to.equal("well!");
    await bus.connection.flush();
    expect(stored).to.deep.equal([]);
  });
});

/** Connects; the end of the scope closes the connection, also where the test fails. */
async function connect(url: string, scope: AsyncDisposableStack): Promise<Bus> {
  const bus = await Bus.connect({ url, name: "test" });
  scope.defer(() => bus.close());
  return bus;
}
