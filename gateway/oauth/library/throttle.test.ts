import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import {
  AUTHENTICATION_FAILURES_MAX,
  SLOWED_LOOKUP_MS,
  SLOWED_LOOKUPS_MAX,
} from "../../account/failed-authentications.ts";
import { type OAuthWorld, oauthWorld } from "../testing/oauth-world.ts";

describe("throttling of programs that guess", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let basic: string;
  beforeEach(async () => {
    world = await oauthWorld();
    const { client_id, client_secret } = await world.makeClient();
    basic = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`;
  });
  afterEach(() => world?.stop());

  const hex = () => randomBytes(16).toString("hex");
  const text = (kind: "at" | "rt") =>
    `tl_${kind}_${hex()}_${randomBytes(32).toString("base64url")}`;
  const send = (path: string, fields: Record<string, string>, authorization?: string) =>
    fetch(`${world.urls[0]}/oauth2/${path}`, {
      method: "POST",
      headers: authorization === undefined ? {} : { Authorization: authorization },
      body: new URLSearchParams(fields),
    });
  const ask = {
    client: () => send("token", { grant_type: "refresh_token", client_id: hex() }),
    refresh: () =>
      send("token", {
        grant_type: "refresh_token",
        client_id: COMMAND_LINE_CLIENT_ID,
        refresh_token: text("rt"),
      }),
    nonsense: () =>
      send("token", {
        grant_type: "nonsense",
        client_id: COMMAND_LINE_CLIENT_ID,
        refresh_token: text("rt"),
      }),
    revoke: () => send("revoke", { client_id: COMMAND_LINE_CLIENT_ID, token: text("at") }),
    userinfo: () => send("userinfo", {}, `Bearer ${text("at")}`),
  };
  const introspect = () => send("introspect", { token: text("at") }, basic);

  const basicOf = (id: string, secret: string) =>
    `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;

  it("delays one client after AUTHENTICATION_FAILURES_MAX wrong secrets, and no other client of its address", async () => {
    const [attacked, neighbour] = [await world.makeClient(), await world.makeClient()];
    const guess = () =>
      send("introspect", { token: text("at") }, basicOf(attacked.client_id, hex()));
    for (let tries = 0; tries < AUTHENTICATION_FAILURES_MAX; tries++) {
      expect((await guess()).status).to.equal(401);
    }
    const refused = await guess();
    expect([refused.status, await refused.json()]).to.deep.equal([
      429,
      {
        error: "rate_limited",
        error_description: "too many unknown clients or tokens came from this address",
      },
    ]);
    const right = basicOf(neighbour.client_id, String(neighbour.client_secret));
    // This client sends its first request from an address that has already failed too often. Its secret is right, so
    // the server answers it.
    expect((await send("introspect", { token: text("at") }, right)).status).to.equal(200);
    expect((await send("revoke", { token: text("at") }, right)).status).to.equal(200);
  });

  for (const path of ["token", "revoke", "introspect"]) {
    it(`looks unknown clients up without delay up to the limit, and then at a bounded rate (${path})`, async () => {
      const guesses = () =>
        Promise.all(
          Array.from({ length: AUTHENTICATION_FAILURES_MAX }, async () => {
            const fields = { grant_type: "refresh_token", token: text("at") };
            return (await send(path, fields, basicOf(hex(), hex()))).status;
          }),
        );
      expect(new Set(await guesses())).to.deep.equal(new Set([401]));
      const startedAt = performance.now();
      expect(new Set(await guesses())).to.deep.equal(new Set([429]));
      const turns = Math.floor(AUTHENTICATION_FAILURES_MAX / SLOWED_LOOKUPS_MAX);
      expect(performance.now() - startedAt).to.be.at.least((turns - 1) * SLOWED_LOOKUP_MS);
      // Another client at the same address with the right secret is still answered, after its lookup has waited in
      // the queue.
      expect((await introspect()).status).to.equal(200);
    });
  }

  for (const [name, once] of Object.entries(ask)) {
    it(`delays an address after AUTHENTICATION_FAILURES_MAX failures (${name}), but not a client that authenticated before`, async () => {
      expect((await introspect()).status).to.equal(200);
      const statuses = new Set<number>();
      for (let tries = 0; tries < AUTHENTICATION_FAILURES_MAX; tries++) {
        const answer = await once();
        await answer.text();
        statuses.add(answer.status);
      }
      expect([...statuses]).to.deep.equal([
        name === "revoke" ? 200 : ["refresh", "nonsense"].includes(name) ? 400 : 401,
      ]);
      for (const other of Object.values(ask)) {
        const { status, headers } = await other();
        expect([status, Number(headers.get("retry-after")) > 0]).to.deep.equal([429, true]);
      }
      expect((await introspect()).status).to.equal(200);
    });
  }
});
