import { RequestError } from "@nats-io/transport-node";
import { expect } from "chai";
import { startNats, type TestNatsServer } from "../../../../scripts/testing/nats-server.ts";
import { connectPatiently } from "../../../../scripts/testing/patient-bus.ts";
import { SecuredNats } from "../../../../scripts/testing/secured-nats.ts";
import { Bus } from "../bus.ts";
import { readDirect } from "./read-direct.ts";

const STREAM = "VALUES";
/** nats-server's bound of one answer. */
const MESSAGES_MAX = 1_024;

describe("readDirect()", function () {
  this.timeout(60_000);
  let server: TestNatsServer;
  let bus: Bus;
  before(async () => {
    server = await startNats();
    bus = await connectPatiently(server.url);
    const config = { name: STREAM, subjects: ["values.>"], max_msgs_per_subject: 1 };
    await bus.jetstream.streams.add({ ...config, allow_direct: true });
  });
  after(async () => {
    await bus?.close();
    await server?.stop();
  });

  const publish = (subject: string, text: string) =>
    bus.jetstream.jetstream().publish(subject, text);
  const read = async (filter: string) => {
    const answer = await readDirect(bus, STREAM, { multi_last: [filter] });
    return answer?.pending === 0 ? answer.messages : undefined;
  };

  it("reads the newest message of each subject, empty ones too, and no other", async () => {
    await publish("values.a.one", "old");
    await publish("values.a.one", "new");
    await publish("values.a.two", "");
    await publish("values.ab.one", "other");
    const messages = await read("values.a.>");
    const texts = messages?.map((message) => [message.subject, message.string()]);
    expect(texts).to.have.deep.members([
      ["values.a.one", "new"],
      ["values.a.two", ""],
    ]);
  });

  it("reads nothing where nothing is", async () => {
    expect(await read("values.none.>")).to.deep.equal([]);
  });

  it("reads as many messages as one answer may hold, and says of more that they are too many", async () => {
    await Promise.all(
      Array.from({ length: MESSAGES_MAX }, (_, index) => publish(`values.many.${index}`, "x")),
    );
    expect(await read("values.many.>")).to.have.length(MESSAGES_MAX);
    await publish("values.many.more", "x");
    expect(await read("values.many.>")).to.equal(undefined);
  });

  it("says of more bytes than one answer may hold that they are too many", async () => {
    for (let index = 0; index < 6; index++) {
      await publish(`values.large.${index}`, "x".repeat(900_000));
    }
    expect(await read("values.large.>")).to.equal(undefined);
    expect(await read("values.large.0")).to.have.length(1);
  });

  it("rejects at once where the user lacks the right", async () => {
    await using nats = await SecuredNats.start();
    await using stranger = new AsyncDisposableStack();
    const restricted = await Bus.connect({ ...nats.login("browser"), name: "test" });
    stranger.defer(() => restricted.close());
    const error = await readDirect(restricted, "KV_state-0", { multi_last: ["any.>"] }).catch(
      (cause) => cause,
    );
    expect(error).to.be.instanceOf(RequestError);
  });
});
