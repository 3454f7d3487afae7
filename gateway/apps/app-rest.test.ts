import { expect } from "chai";
import { pino } from "pino";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { AppRestAnswer, type AppRestRequest } from "../../schemas/apps/app-rest.ts";
import { AUTHENTICATION_FAILURES_MAX } from "../account/failed-authentications.ts";
import { ACCOUNT, GitWorld } from "../repositories/testing/git-world.ts";
import { serveAppRest } from "./app-rest.ts";

const OTHER = "b".repeat(32);

describe("git calls of apps", function () {
  this.timeout(60_000);

  it("count unknown tokens for each account, and not for all apps of a gateway together", async () => {
    await using world = await GitWorld.start();
    const { service } = await world.gateway();
    let answer: (payload: string) => string | Promise<string> = () => "";
    const rest = await serveAppRest({
      routes: () => (_request, _response, next) => next(),
      git: service.router,
      answerOn: (_subject, given) => {
        answer = given;
        return () => {};
      },
      blobs: new BlobStore(world.world.bus, systemClock),
      logger: pino({ level: "silent" }),
      now: Date.now,
    });
    await using ends = new AsyncDisposableStack();
    ends.defer(() => rest.close());
    const statusOf = async (accountId: string, token: string) => {
      const url = "http://trunkline/git/tests/none.git/info/refs?service=git-upload-pack";
      const headers: [string, string][] = [["authorization", `Bearer ${token}`]];
      const asked: AppRestRequest = {
        ...{ accountId, app: "hooks", permission: "artifacts", namespace: "tests" },
        request: { method: "GET", url, headers },
        deadlineAt: Date.now() + 50_000,
      };
      return AppRestAnswer.parse(JSON.parse(await answer(JSON.stringify(asked)))).status;
    };
    for (let i = 0; i < AUTHENTICATION_FAILURES_MAX; i++) {
      expect(await statusOf(ACCOUNT, `art_v1_${i}`)).to.equal(403);
    }
    expect(await statusOf(ACCOUNT, "art_v1_past")).to.equal(429);
    expect(await statusOf(OTHER, "art_v1_other")).to.equal(403);
  });
});
