import { expect } from "chai";
import { oauthGrantActor } from "../../actors/oauth/oauth-grant/oauth-grant.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError, type ErrorCode } from "../../schemas/errors.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { callAndNotify } from "./call-and-notify.ts";

describe("callAndNotify()", () => {
  let asked: string[];
  let refusal: ErrorCode | undefined;
  let actors: ActorClient;
  beforeEach(() => {
    asked = [];
    refusal = undefined;
    const memory = memoryActors({ actors: [oauthGrantActor] });
    const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
      asked.push(message);
      if (refusal !== undefined && message !== "tellAgain") throw new ActorError(refusal, "no");
      return memory.call(contract, key, message, ...rest);
    };
    actors = { ...memory, call };
  });
  const revoke = () => callAndNotify(actors, oauthGrant, "a".repeat(32), "revoke", {});

  it("returns once subscribers are notified", async () => {
    expect(await revoke()).to.deep.equal({});
    expect(asked).to.deep.equal(["revoke", "tellAgain"]);
  });

  it("repeats the notification if the call is refused, and sends none if no actor answered", async () => {
    for (const [code, told] of [
      ["not_found", ["revoke", "tellAgain"]],
      ["conflict", ["revoke", "tellAgain"]],
      ["unavailable", ["revoke"]],
      ["busy", ["revoke"]],
    ] as const) {
      asked = [];
      refusal = code;
      const error = await revoke().catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ActorError).and.include({ code });
      expect(asked).to.deep.equal(told);
    }
  });

  it("fails if the notification cannot be sent", async () => {
    const { call } = actors;
    const away: ActorClient["call"] = async (contract, key, message, ...rest) => {
      if (message === "tellAgain") throw new ActorError("unavailable", "away");
      return call(contract, key, message, ...rest);
    };
    actors = { ...actors, call: away };
    const error = await revoke().catch((reason: unknown) => reason);
    expect(error).to.include({ code: "unavailable" });
  });
});
