import { createServer, type Server } from "node:http";
import { expect } from "chai";
import express from "express";
import { pino } from "pino";
import { requestLimitActor } from "../../actors/account/request-limit/request-limit.ts";
import { interactionActor } from "../../actors/oauth/interaction/interaction.ts";
import { oauthKeysActor } from "../../actors/oauth/oauth-keys/oauth-keys.ts";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { freePort } from "../../scripts/free-port.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { MemoryLive } from "../testing/memory-live.ts";
import { oauthRouter } from "./oauth-router.ts";
import { authorize, basicOf, ClientCalls } from "./testing/client-calls.ts";
import { oauthWorld, Person } from "./testing/oauth-world.ts";
import { TOKEN_CACHED_MS } from "./tokens/access-tokens.ts";

const BASIC = { Authorization: `Basic ${Buffer.from(`${"c".repeat(32)}:x`).toString("base64")}` };

describe("authorization server whose actors are unreachable", () => {
  let base: string;
  let server: Server;
  let stopping: AbortController;
  let away: (kind: string) => boolean;
  beforeEach(async () => {
    const port = await freePort();
    base = `http://127.0.0.1:${port}`;
    stopping = new AbortController();
    const memory = memoryActors({ actors: [interactionActor, oauthKeysActor, requestLimitActor] });
    away = (kind) => kind === "oauth-client";
    const call: ActorClient["call"] = async (contract, ...rest) => {
      if (!away(contract.kind)) return memory.call(contract, ...rest);
      throw new ActorError("unavailable", "Cannot call: away", { retryAfterS: 7 });
    };
    const router = oauthRouter({
      actors: { ...memory, call },
      live: new MemoryLive(),
      logger: pino({ level: "silent" }),
      config: { publicUrl: base, requestsPerWindow: 0 },
      now: Date.now,
      stopping: stopping.signal,
    });
    const app = express().use((_request, response, next) => {
      response.locals.logger = pino({ level: "silent" });
      next();
    });
    server = createServer(app.use(router)).listen(port, "127.0.0.1");
  });
  afterEach(() => {
    stopping.abort();
    server.closeAllConnections();
    server.close();
  });

  const authorize = () =>
    fetch(`${base}/oauth2/auth?client_id=${"c".repeat(32)}&response_type=code`, {
      headers: { Accept: "text/html" },
    });

  const expectUnavailable = async (answer: Response) => {
    const { error } = (await answer.json()) as { error: string };
    const retryAfter = answer.headers.get("retry-after");
    const seen = [answer.status, error, retryAfter];
    expect(seen).to.deep.equal([503, "temporarily_unavailable", "1"]);
  };

  // The keys are away when oidc-provider cannot start; the client, when it looks the client up.
  for (const kind of ["oauth-client", "oauth-keys"]) {
    it(`answers programs temporarily_unavailable, with Retry-After, without ${kind}`, async () => {
      away = (one) => one === kind;
      for (const path of ["token", "revoke", "introspect"]) {
        const fields = { grant_type: "refresh_token", refresh_token: "x", token: "x" };
        const body = new URLSearchParams(fields);
        const url = `${base}/oauth2/${path}`;
        await expectUnavailable(await fetch(url, { method: "POST", headers: BASIC, body }));
      }
      if (kind === "oauth-keys") {
        await expectUnavailable(await fetch(`${base}/.well-known/jwks.json`));
      }
    });
  }

  it("shows people a page, with Retry-After", async () => {
    const answer = await authorize();
    expect([answer.status, answer.headers.get("retry-after")]).to.deep.equal([503, "1"]);
    expect(await answer.text()).to.contain("temporarily_unavailable");
    // The request fails earlier here: when the requests of the address are counted.
    away = (kind) => kind === "request-limit";
    const early = await authorize();
    expect([early.status, early.headers.get("retry-after")]).to.deep.equal([503, "7"]);
    expect(await early.text()).to.contain("Not at the moment");
  });
});

describe("a known introspection whose client's actor is unreachable", function () {
  this.timeout(120_000);

  it("is answered temporarily_unavailable, with Retry-After", async () => {
    let laterMs = 0;
    let isAway = false;
    const meddle = (actors: ActorClient): ActorClient => {
      const call: ActorClient["call"] = async (contract, ...rest) => {
        if (!isAway || contract.kind !== "oauth-client") return actors.call(contract, ...rest);
        throw new ActorError("unavailable", "Cannot call: away");
      };
      return { call, send: actors.send.bind(actors), run: actors.run.bind(actors) };
    };
    const world = await oauthWorld({ meddle, nowOf: () => () => Date.now() + laterMs });
    try {
      const calls = new ClientCalls(world);
      const by = await world.makeClient();
      const owner = new Person(world.urls[0] ?? "");
      await owner.open("/login");
      await owner.signIn(world.owner);
      const { body } = await calls.redeem((await authorize(owner, by)).get("code"), { by });
      // The gateway repeats answers only to requests with this header.
      const type = { "Content-Type": "application/x-www-form-urlencoded" };
      const sent = { by, headers: { ...basicOf(by), ...type } };
      const introspect = () => calls.post("introspect", { token: body.access_token }, sent);
      for (let times = 0; times < 2; times++) {
        expect((await introspect()).body.active).to.equal(true);
      }
      laterMs += 2 * TOKEN_CACHED_MS;
      isAway = true;
      const { status, body: refused, headers } = await introspect();
      expect([status, refused.error]).to.deep.equal([503, "temporarily_unavailable"]);
      expect(headers.get("retry-after")).to.equal("1");
    } finally {
      await world.stop();
    }
  });
});
