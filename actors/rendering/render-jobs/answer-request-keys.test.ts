import { expect } from "chai";
import { pino } from "pino";
import { NO_APP } from "../../../schemas/apps/outgoing-webhook.ts";
import { ActorError } from "../../../schemas/errors.ts";
import {
  decryptRequest,
  encryptRequest,
  newRequestKey,
  requestKeyName,
} from "../../../schemas/rendering/request-key.ts";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { newSecretKey, SecretBox } from "../../apps/lib/app-secrets/secret-box.ts";
import { Bus } from "../../runtime/bus/bus.ts";
import { NoRequestKey, RequestKeys } from "../lib/request-keys/request-keys.ts";
import { answerRequestKeys } from "./answer-request-keys.ts";

const [account, job, other] = ["a", "b", "c"].map((character) => character.repeat(32)) as [
  string,
  string,
  string,
];

async function expectNoKey(opening: Promise<string>): Promise<void> {
  const error = await opening.catch((reason) => reason);
  // The error must not be an `ActorError`, which would end the task at its first attempt.
  expect(error).to.be.instanceOf(NoRequestKey).and.not.instanceOf(ActorError);
}

describe("keys of requests", () => {
  let started: AsyncDisposableStack;
  let bus: Bus;
  let lines: Record<string, unknown>[];
  beforeEach(async () => {
    started = new AsyncDisposableStack();
    const nats = await startNats();
    started.defer(() => nats.stop());
    bus = await Bus.connect({ url: nats.url, name: "test" });
    started.defer(() => bus.close());
    lines = [];
  });
  afterEach(() => started.disposeAsync());

  const logger = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const answer = (secrets: SecretBox) => answerRequestKeys({ bus, logger, secrets });
  const sealed = (box: SecretBox, key: string) =>
    box.seal(key, { accountId: account, app: NO_APP, name: requestKeyName(job) });
  const open = (text: string, of = { account, job }) =>
    new RequestKeys(bus).open({ ...of, sealed: text });

  it("a worker gets the key of its job, also after the platform's key was rotated", async () => {
    const [old, recent] = [newSecretKey(), newSecretKey()];
    const key = newRequestKey();
    const text = sealed(new SecretBox([old]), key);
    expect(text).to.not.include(key);
    answer(new SecretBox([recent, old]));
    expect(await open(text)).to.equal(key);
    const request = Buffer.from("cookie=planted");
    const encrypted = await encryptRequest(request, key);
    expect(Buffer.from(encrypted).includes("planted")).to.equal(false);
    expect(Buffer.from(await decryptRequest(encrypted, key)).equals(request)).to.equal(true);
  });

  it("a key opens for its account and job alone; the refusal is logged, and the task may retry", async () => {
    const box = new SecretBox([newSecretKey()]);
    const text = sealed(box, newRequestKey());
    answer(box);
    const refused = [
      open(text, { account, job: other }),
      open(text, { account: other, job }),
      open(box.seal("secret", { accountId: account, app: "hooks", name: "SECRET" })),
      open(sealed(new SecretBox([newSecretKey()]), "x")),
    ];
    for (const one of refused) await expectNoKey(one);
    expect(lines.map(({ msg }) => msg)).to.deep.equal(
      refused.map(() => "request of a job not opened"),
    );
  });

  it("a job that a restarted gateway sealed waits for actors that have the new key", async () => {
    const [old, recent] = [newSecretKey(), newSecretKey()];
    const key = newRequestKey();
    const text = sealed(new SecretBox([recent, old]), key);
    const leave = answer(new SecretBox([old]));
    await expectNoKey(open(text));
    leave();
    answer(new SecretBox([recent, old]));
    await bus.connection.flush();
    expect(await open(text)).to.equal(key);
  });

  it("while no process answers, the task may retry; after the end nobody answers", async () => {
    const box = new SecretBox([newSecretKey()]);
    const text = sealed(box, newRequestKey());
    const fails = async () => {
      const error = await open(text).catch((reason) => reason);
      expect(error.message).to.equal("Cannot open request of a job: no actors answer");
    };
    await fails();
    const leave = answer(box);
    await open(text);
    leave();
    await bus.connection.flush();
    await fails();
  });
});
