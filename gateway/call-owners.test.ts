import { createServer } from "node:http";
import { expect } from "chai";
import { pino } from "pino";
import { Registry } from "prom-client";
import type { ActorClient } from "../actors/runtime/calls/actor-client.ts";
import { type CallOwner, currentCallOwner } from "../actors/runtime/calls/call-places.ts";
import { listen } from "../scripts/testing/loopback-server.ts";
import { memoryActors } from "../scripts/testing/memory-actors.ts";
import { type AppsParts, buildApp } from "./app.ts";
import { RequestCounts } from "./http/request-counts.ts";
import { gitRouter } from "./repositories/git/git-router.ts";
import type { GitParts } from "./repositories/git-parts.ts";
import { RepoFinder } from "./repositories/repo-finder.ts";
import { testGateway, testParts } from "./testing/test-gateway.ts";

const ACCOUNT = "a".repeat(32);

/** Records the owner of each call. */
function recording() {
  const seen: { kind: string; owner: CallOwner | undefined }[] = [];
  const through = (actors: ActorClient): ActorClient => ({
    ...actors,
    call(...parameters) {
      seen.push({ kind: parameters[0].kind, owner: currentCallOwner() });
      return actors.call(...parameters);
    },
  });
  return { seen, through };
}

describe("calls of a request", function () {
  this.timeout(60_000);

  it("count for the account of the caller as soon as its token is known", async () => {
    const { seen, through } = recording();
    const gateway = await testGateway({ through, config: { requestsPerWindow: 10 } });
    try {
      const { accountId } = gateway;
      expect((await gateway.ask(`/v4/accounts/${accountId}/tokens`)).status).to.equal(200);
      const owner = { accountId, isVisitor: false };
      expect(seen[0]).to.deep.equal({ kind: "api-token", owner: undefined });
      expect(seen.slice(1)).to.deep.include.members([
        { kind: "request-limit", owner },
        { kind: "account", owner },
      ]);
    } finally {
      await gateway.stop();
    }
  });

  it("count for the visitors of the account if they are for its apps or its repositories", async () => {
    const { seen, through } = recording();
    const actors = through(memoryActors({}));
    const git = { actors, finder: new RepoFinder(actors), cache: {} } as unknown as GitParts;
    const app = buildApp(
      {
        ...testParts(actors),
        ...{ registry: new Registry(), counts: new RequestCounts(), missing: () => [] },
        logger: pino({ level: "silent" }),
        apps: { appsDomain: "apps.localhost", answerBelow: () => {} } as unknown as AppsParts,
        git: gitRouter(git, { now: Date.now }),
      },
      [],
    );
    const server = await listen(createServer(app), "127.0.0.1");
    try {
      const url = `http://${server.address}:${server.port}`;
      await fetch(`${url}/apps/${ACCOUNT}/shop/`);
      const headers = { Authorization: `Bearer art_v1_${"0".repeat(40)}` };
      // Different spellings of an account are no different accounts, each with a share.
      for (const account of [ACCOUNT, ACCOUNT.replace("a", "%61"), ACCOUNT.replace("aa", "a%61")]) {
        const path = `/git/${account}/space/r/info/refs?service=git-upload-pack`;
        await fetch(url + path, { headers });
      }
      const owner = { accountId: ACCOUNT, isVisitor: true };
      const escaped = { accountId: "", isVisitor: true };
      expect(seen).to.deep.equal([
        { kind: "app", owner },
        { kind: "namespace", owner },
        { kind: "namespace", owner: escaped },
        { kind: "namespace", owner: escaped },
      ]);
    } finally {
      await server.close();
    }
  });
});
