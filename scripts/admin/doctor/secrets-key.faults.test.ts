import { expect } from "chai";
import pino from "pino";
import { newSecretKey, SecretBox } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import { answerRequestKeys } from "../../../actors/rendering/render-jobs/answer-request-keys.ts";
import { startWorld } from "../../testing/actor-world.ts";
import { DoctorScene } from "../../testing/doctor-scene.ts";

describe("admin doctor secrets", function () {
  this.timeout(120_000);

  it("compares the key of this machine with those of hosts of actors", async () => {
    await using world = await startWorld();
    await using scene = await DoctorScene.make();
    const logger = pino({ level: "silent" });
    const [old, key] = [newSecretKey(), newSecretKey()];
    const look = async (own?: string) => {
      const settings = { TRUNKLINE_NATS_URL: world.url };
      const environment = own ? { ...settings, TRUNKLINE_SECRETS_KEY: own } : settings;
      const { findings } = await scene.report(["secrets"], environment);
      return findings
        .filter(({ about }) => about === "secrets key")
        .map(({ level, mend }) => [level, mend?.includes("TRUNKLINE_SECRETS_KEY")]);
    };
    // No host of actors answers.
    expect(await look(key)).to.deep.equal([]);
    const host = (keys: string[]) =>
      answerRequestKeys({ bus: world.bus, logger, secrets: new SecretBox(keys) });
    const stop = host([key, old]);
    expect(await look(key)).to.deep.equal([["good", undefined]]);
    expect(await look(old)).to.deep.equal([["good", undefined]]);
    // This machine has no key, and the doctor makes none.
    expect(await look()).to.deep.equal([]);
    expect(await look(newSecretKey())).to.deep.equal([["failure", true]]);
    stop();
  });
});
