import { expect } from "chai";
import { dnsCheckWorker } from "../../../actors/oauth/workers/dns-check/dns-check.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import {
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CLIENTS_PER_DAY_MAX,
} from "../../../schemas/oauth/limits.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import {
  CLIENT_URI_CHARS_MAX,
  CLIENT_URIS_MAX,
} from "../../../schemas/oauth/oauth-client-settings.ts";
import { ALL_SCOPES } from "../../../schemas/oauth/scopes.ts";
import { DnsServer } from "../../../scripts/testing/dns-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { CALLS_OF_REQUEST_MAX } from "../../http/call-few.ts";
import {
  giveToken,
  openAccount,
  START,
  type TestGateway,
  testGateway,
} from "../../testing/test-gateway.ts";
import { matchingSecret } from "../clients/client-secret.ts";

const wanted = {
  client_name: "Build Bot",
  grant_types: ["authorization_code"],
  response_types: ["code"],
  redirect_uris: ["https://bot.example.com/callback"],
  scopes: ["artifacts.read", "openid"],
  token_endpoint_auth_method: "client_secret_basic",
};
const complete = {
  ...wanted,
  logo_uri: "https://bot.example.com/logo.png",
  client_uri: "https://bot.example.com/",
};

describe("routes of OAuth clients", function () {
  this.timeout(300_000);
  let gateway: TestGateway;
  let server: DnsServer;
  let clients: string;
  beforeEach(async () => {
    server = await DnsServer.start();
    gateway = await testGateway({ workers: [dnsCheckWorker({ servers: [server.address] })] });
    clients = `/v4/accounts/${gateway.accountId}/oauth_clients`;
  });
  afterEach(async () => {
    await gateway.stop();
    await server[Symbol.asyncDispose]();
  });

  const create = (json: unknown = wanted, token?: string) =>
    gateway.ask(clients, { method: "POST", json, ...(token === undefined ? {} : { token }) });
  const made = async (json: unknown = wanted) => (await create(json)).json?.result;
  const patch = (id: string, json: unknown) =>
    gateway.ask(`${clients}/${id}`, { method: "PATCH", json });
  const rotate = (id: string, method: "POST" | "DELETE") =>
    gateway.ask(`${clients}/${id}/rotate_secret`, { method });

  /** Creates a client whose domain is verified. */
  async function verified() {
    const client = await made(complete);
    server.records.set("bot.example.com", [[client.client_uri_verification.text]]);
    await gateway.actors.remind();
    return client.client_id;
  }

  it("listOAuthClients() has CALLS_OF_REQUEST_MAX calls in flight at most", async () => {
    let [open, most] = [0, 0];
    const through = (actors: ActorClient): ActorClient => ({
      ...actors,
      async call(...asked) {
        open += 1;
        most = Math.max(open, most);
        await new Promise((resolve) => setImmediate(resolve));
        return actors.call(...asked).finally(() => {
          open -= 1;
        });
      },
    });
    await gateway.stop();
    gateway = await testGateway({ through });
    clients = `/v4/accounts/${gateway.accountId}/oauth_clients`;
    const count = 3 * CALLS_OF_REQUEST_MAX;
    for (let made = 0; made < count; made += 1) await create();
    most = 0;
    const { json } = await gateway.ask(`${clients}?limit=100`);
    expect([json?.result.length, most]).to.deep.equal([count, CALLS_OF_REQUEST_MAX]);
  });

  it("createOAuthClient() shows the secret once, and stores only its hash", async () => {
    const { status, json } = await create();
    expect(status).to.equal(200);
    const { client_id: id, client_secret: secret, ...shown } = json?.result ?? {};
    expect(id).to.match(/^[0-9a-f]{32}$/);
    expect(secret).to.match(/^tlcs_[\w-]{43}$/);
    const at = new Date(START).toISOString();
    expect(shown).to.deep.equal({
      ...wanted,
      visibility: "private",
      post_logout_redirect_uris: [],
      optional_scopes: [],
      allowed_cors_origins: [],
      has_rotated_secret: false,
      secrets: [{ last_four: secret.slice(-4), created_at: at }],
      ...{ created_at: at, updated_at: at },
    });
    const got = await gateway.ask(`${clients}/${id}`);
    expect(got.json?.result).to.deep.equal({ client_id: id, ...shown });
    const listed = await gateway.ask(clients);
    expect(listed.json?.result).to.deep.equal([{ client_id: id, ...shown }]);
    const { secrets } = await gateway.actors.call(oauthClient, id, "getForAuthorization", {});
    expect(matchingSecret(secrets, secret)?.id).to.equal(secrets[0]?.id);
    for (const wrong of ["", secret.slice(0, -1), `${secret}x`, secret.toUpperCase()]) {
      expect(matchingSecret(secrets, wrong)).to.equal(undefined);
    }
    expect(matchingSecret([], secret)).to.equal(undefined);
    expect(JSON.stringify(secrets) + got.text + listed.text).not.to.contain(secret);
    expect(JSON.stringify(gateway.logs)).not.to.contain(secret);
  });

  it("createOAuthClient() makes no secret for a client with authentication method none", async () => {
    const client = await made({
      ...wanted,
      redirect_uris: ["com.example.app:/callback", "http://127.0.0.1/callback"],
      token_endpoint_auth_method: "none",
      ...{ logo_uri: null, policy_uri: null, tos_uri: null, client_uri: null },
    });
    expect(client).to.not.have.property("client_secret");
    expect(client.secrets).to.deep.equal([]);
    expect((await rotate(client.client_id, "POST")).status).to.equal(400);
    expect((await rotate(client.client_id, "DELETE")).status).to.equal(404);
  });

  it("createOAuthClient() refuses each fault with its pointer and what would be valid", async () => {
    const uris = (count: number) =>
      Array.from({ length: count }, (_, number) => `https://a.example/${number}`);
    const { client_name: _, ...nameless } = wanted;
    const faults: [unknown, string, RegExp][] = [
      [nameless, "/client_name", /Missing/],
      [{ ...wanted, client_name: "" }, "/client_name", /a text of 1 to \d+ characters$/],
      [{ ...wanted, client_name: "n".repeat(101) }, "/client_name", /100/],
      [{ ...wanted, client_name: "   " }, "/client_name", /visible name/],
      [{ ...wanted, client_name: "a\u0007" }, "/client_name", /control or invisible characters/],
      [
        { ...wanted, client_name: "moc.elpmaxe \u202e" },
        "/client_name",
        /control or invisible characters/,
      ],
      [{ ...wanted, client_name: "half \ud83d" }, "/client_name", /visible name/],
      [{ ...wanted, grant_types: ["refresh_token"] }, "/grant_types", /authorization_code/],
      [{ ...wanted, grant_types: ["implicit"] }, "/grant_types/0", /authorization_code/],
      [{ ...wanted, grant_types: [] }, "/grant_types", /an array of 1 to \d+ items/],
      [
        { ...wanted, grant_types: ["authorization_code", "authorization_code"] },
        "/grant_types",
        /no duplicates/,
      ],
      [{ ...wanted, response_types: ["token"] }, "/response_types/0", /code/],
      [{ ...wanted, response_types: [] }, "/response_types", /1/],
      [{ ...wanted, redirect_uris: [] }, "/redirect_uris", /an array of 1 to \d+ items/],
      [{ ...wanted, redirect_uris: ["http://a.example/"] }, "/redirect_uris/0", /https, or http/],
      [{ ...wanted, redirect_uris: ["com.example.app:/x"] }, "/redirect_uris/0", /"none"/],
      [{ ...wanted, redirect_uris: ["https://a.example/#"] }, "/redirect_uris/0", /fragment/],
      [{ ...wanted, redirect_uris: uris(CLIENT_URIS_MAX + 1) }, "/redirect_uris", /50/],
      [
        { ...wanted, redirect_uris: [`https://a.example/${"x".repeat(CLIENT_URI_CHARS_MAX)}`] },
        "/redirect_uris/0",
        /2048/,
      ],
      [
        { ...wanted, redirect_uris: ["https://a.example/", "https://a.example/"] },
        "/redirect_uris",
        /no duplicates/,
      ],
      [{ ...wanted, post_logout_redirect_uris: ["x"] }, "/post_logout_redirect_uris/0", /URI/],
      [{ ...wanted, scopes: [] }, "/scopes", /an array of 1 to \d+ items/],
      [{ ...wanted, scopes: ["everything"] }, "/scopes/0", /apps\.read/],
      [{ ...wanted, optional_scopes: ["apps.read"] }, "/optional_scopes/0", /is not in scopes/],
      [{ ...wanted, optional_scopes: ["openid"] }, "/optional_scopes/0", /cannot be optional/],
      [
        { ...wanted, token_endpoint_auth_method: "private_key_jwt" },
        "/token_endpoint_auth_method",
        /none/,
      ],
      [{ ...wanted, logo_uri: "http://a.example/" }, "/logo_uri", /https URL/],
      [{ ...wanted, policy_uri: "x" }, "/policy_uri", /URI/],
      [{ ...wanted, tos_uri: "javascript:x" }, "/tos_uri", /https URL/],
      [{ ...wanted, client_uri: "https://192.0.2.1/" }, "/client_uri", /domain name/],
      [
        { ...wanted, allowed_cors_origins: ["https://a.example/"] },
        "/allowed_cors_origins/0",
        /origin/,
      ],
      [{ ...wanted, visibility: "public" }, "/visibility", /Unknown field/],
      [{ ...wanted, client_id: "mine" }, "/client_id", /Unknown field/],
    ];
    for (const [json, pointer, expected] of faults) {
      const { status, json: answer } = await create(json);
      expect(status, pointer).to.equal(400);
      const [error] = answer?.errors ?? [];
      expect(error?.source?.pointer, error?.message).to.equal(pointer);
      expect(error?.message).to.match(expected);
    }
    expect((await gateway.ask(clients)).json?.result).to.deep.equal([]);
    const longest = `https://a.example/${"x".repeat(CLIENT_URI_CHARS_MAX - 18)}`;
    expect(
      (await create({ ...wanted, redirect_uris: [longest], tos_uri: longest })).status,
    ).to.equal(200);
    const longer = await create({ ...wanted, redirect_uris: [`${longest}x`] });
    expect(longer.json?.errors[0]?.source?.pointer).to.equal("/redirect_uris/0");
    const most = { ...wanted, client_name: "n".repeat(100), redirect_uris: uris(CLIENT_URIS_MAX) };
    expect((await create(most)).status).to.equal(200);
  });

  it("createOAuthClient() accepts the last client of the limit and refuses one more", async () => {
    for (let number = 1; number <= OAUTH_CLIENTS_PER_ACCOUNT_MAX; number++) {
      expect((await create({ ...wanted, client_name: `Bot ${number}` })).status).to.equal(200);
    }
    const { status, json } = await create();
    expect(status).to.equal(409);
    expect(json?.errors[0]?.code).to.equal(1007);
    expect(json?.errors[0]?.message).to.contain(String(OAUTH_CLIENTS_PER_ACCOUNT_MAX));
    const all = await gateway.ask(clients);
    expect(all.json?.result).to.have.length(OAUTH_CLIENTS_PER_ACCOUNT_MAX);
    expect(all.json?.result_info).to.deep.equal({ count: OAUTH_CLIENTS_PER_ACCOUNT_MAX });
  });

  it("createOAuthClient() answers 429 past OAUTH_CLIENTS_PER_DAY_MAX clients of a day, although each was deleted", async () => {
    const { actors, accountId } = gateway;
    for (let number = 1; number <= OAUTH_CLIENTS_PER_DAY_MAX; number++) {
      const clientId = number.toString(16).padStart(32, "0");
      await actors.call(oauthClientList, accountId, "reserve", { clientId });
      await actors.send(oauthClientList, accountId, "removed", { clientId });
      await actors.settled();
    }
    const { status, headers, json } = await create();
    expect(status).to.equal(429);
    expect(Number(headers.get("Retry-After"))).to.be.within(1, 86_400);
    expect(json?.errors[0]?.message).to.contain(String(OAUTH_CLIENTS_PER_DAY_MAX));
    expect((await gateway.ask(clients)).json?.result).to.deep.equal([]);
  });

  it("listOAuthClients() lists the newest first, from a cursor, without deleted clients", async () => {
    const ids: string[] = [];
    for (let number = 0; number < 5; number++) ids.unshift((await made()).client_id);
    const first = await gateway.ask(`${clients}?limit=2`);
    const cursor = first.json?.result_info?.cursor;
    const [, , gone] = ids;
    await gateway.ask(`${clients}/${gone}`, { method: "DELETE" });
    const rest = await gateway.ask(`${clients}?limit=10&cursor=${cursor}`);
    const shown = [first, rest].map(({ json }) =>
      json?.result.map(({ client_id: id }: { client_id: string }) => id),
    );
    expect(shown).to.deep.equal([ids.slice(0, 2), ids.slice(3)]);
    expect(rest.json?.result_info).to.not.have.property("cursor");
    for (const query of ["cursor=x", "limit=0", "limit=101", "page=0"]) {
      const { status, json } = await gateway.ask(`${clients}?${query}`);
      expect(status, query).to.equal(400);
      const pointer = `/query/${query.slice(0, query.indexOf("="))}`;
      expect(json?.errors[0]?.source).to.deep.equal({ pointer });
      expect(json?.errors[0]?.message).to.match(new RegExp(`^Cannot accept ${pointer}: \\S`));
    }
  });

  it("updateOAuthClient() changes the sent fields, and null removes one", async () => {
    const {
      client_id: id,
      client_secret: _,
      ...before
    } = await made({ ...wanted, tos_uri: "https://a.example/tos" });
    gateway.clock.now += 1_000;
    const { json } = await patch(id, {
      client_name: "Other",
      tos_uri: null,
      optional_scopes: ["artifacts.read"],
    });
    const { tos_uri: __, ...kept } = before;
    expect(json?.result).to.deep.equal({
      ...{ client_id: id, ...kept, client_name: "Other", optional_scopes: ["artifacts.read"] },
      updated_at: new Date(gateway.clock.now).toISOString(),
    });
    const faults: [unknown, string][] = [
      [{ client_name: null }, "/client_name"],
      [{ scopes: ["openid"] }, "/optional_scopes/0"],
      [{ visibility: "secret" }, "/visibility"],
      [{ client_secret: "mine" }, "/client_secret"],
      [{ redirect_uris: ["com.example.app:/x"] }, "/redirect_uris/0"],
    ];
    for (const [change, pointer] of faults) {
      const refused = await patch(id, change);
      expect(refused.status).to.equal(400);
      expect(refused.json?.errors[0]?.source?.pointer).to.equal(pointer);
    }
    expect((await patch(id, {})).json?.result).to.deep.equal(json?.result);
  });

  it("a client is verified by its DNS, can be made public with all its parts, and never private again", async () => {
    const bare = await made();
    const missing = await patch(bare.client_id, { visibility: "public" });
    expect(missing.status).to.equal(409);
    expect(missing.json?.errors.map(({ source }) => source?.pointer)).to.deep.equal([
      "/logo_uri",
      "/client_uri",
    ]);
    const pending = await made(complete);
    expect(pending.client_uri_verification).to.include({ status: "pending" });
    expect(pending.client_uri_verification.text).to.match(
      /^vendor_oauth_client_publisher=[0-9a-f]{32}$/,
    );
    await gateway.actors.remind();
    const waiting = await gateway.ask(`${clients}/${pending.client_id}`);
    expect(waiting.json?.result.client_uri_verification).to.include({
      ...{ status: "in_progress", last_answer: "The domain does not exist" },
    });
    const unproven = await patch(pending.client_id, { visibility: "public" });
    expect(unproven.status).to.equal(409);
    expect(unproven.json?.errors[0]?.message).to.contain("it is in_progress");

    const id = await verified();
    const { json } = await patch(id, { visibility: "public" });
    expect(json?.result).to.include({
      visibility: "public",
      promoted_at: new Date(START).toISOString(),
    });
    expect(json?.result.client_uri_verification).to.include({ status: "verified" });
    for (const change of [
      { visibility: "private" },
      { logo_uri: null },
      { client_uri: null },
      { client_uri: "https://other.example.com/" },
      { scopes: ["openid"] },
    ]) {
      expect((await patch(id, change)).status, JSON.stringify(change)).to.equal(409);
    }
    const path = await patch(id, {
      client_uri: "https://bot.example.com/other",
      visibility: "public",
    });
    expect(path.json?.result).to.include({ visibility: "public" });
  });

  it("its domain is looked up at the interval and for the time in the settings", async () => {
    await gateway.stop();
    gateway = await testGateway({
      config: { dnsPollSeconds: 25, dnsWindowSeconds: 300 },
      workers: [dnsCheckWorker({ servers: [server.address] })],
    });
    clients = `/v4/accounts/${gateway.accountId}/oauth_clients`;
    const { client_id: id } = await made(complete);
    const pauses: number[] = [];
    for (;;) {
      await gateway.actors.remind();
      const { json } = await gateway.ask(`${clients}/${id}`);
      const { status, next_check_at } = json?.result.client_uri_verification ?? {};
      if (status === "failed") break;
      expect(status).to.equal("in_progress");
      pauses.push(Date.parse(next_check_at) - gateway.clock.now);
      gateway.clock.now = Date.parse(next_check_at);
    }
    expect(Math.max(...pauses)).to.equal(25_000);
    expect(gateway.clock.now - START).to.equal(300_000);
    expect(server.asked).to.have.length(pauses.length);
  });

  it("rotateOAuthClientSecret() again replaces a second secret that was never used", async () => {
    const { client_id: id, client_secret: first } = await made();
    const secretOf = async () => (await rotate(id, "POST")).json?.result.client_secret;
    const [second, third] = [await secretOf(), await secretOf()];
    const { secrets } = await gateway.actors.call(oauthClient, id, "getForAuthorization", {});
    const valid = [first, second, third].map((one) => matchingSecret(secrets, one) !== undefined);
    expect(valid).to.deep.equal([true, false, true]);
  });

  it("rotateOAuthClientSecret() makes a second secret, refuses a third if it is in use, and the old one can be deleted", async () => {
    const { client_id: id, client_secret: first } = await made();
    const { json } = await rotate(id, "POST");
    const { client_secret: second, ...others } = json?.result ?? {};
    expect(others).to.deep.equal({});
    expect(second)
      .to.match(/^tlcs_[\w-]{43}$/)
      .and.not.equal(first);
    const got = await gateway.ask(`${clients}/${id}`);
    expect(got.json?.result.has_rotated_secret).to.equal(true);
    const hints = ({ secrets }: { secrets: { last_four: string }[] }) =>
      secrets.map((one) => one.last_four);
    expect(hints(got.json?.result)).to.deep.equal([first.slice(-4), second.slice(-4)]);
    const asked = { accountId: gateway.accountId };
    const { secrets } = await gateway.actors.call(oauthClient, id, "get", asked);
    const used = { secretId: secrets[1]?.id ?? "" };
    await gateway.actors.send(oauthClient, id, "secretUsed", used);
    await until("the use is stored", async () => {
      const shown = await gateway.ask(`${clients}/${id}`);
      return shown.json?.result.secrets[1].last_used_at !== undefined;
    });
    const refused = await rotate(id, "POST");
    expect(refused.status).to.equal(409);
    expect(refused.json?.errors[0]?.code).to.equal(1006);
    expect((await rotate(id, "DELETE")).json?.result).to.deep.equal({ id });
    const left = await gateway.actors.call(oauthClient, id, "getForAuthorization", {});
    expect(matchingSecret(left.secrets, first)).to.equal(undefined);
    expect(matchingSecret(left.secrets, second)).to.not.equal(undefined);
    expect((await rotate(id, "DELETE")).status).to.equal(404);
  });

  it("deleteOAuthClient() applies at once, and the log remains", async () => {
    const { client_id: id } = await made();
    const deleted = await gateway.ask(`${clients}/${id}`, { method: "DELETE" });
    expect(deleted.json?.result).to.deep.equal({ id });
    for (const asking of [
      gateway.ask(`${clients}/${id}`),
      gateway.ask(`${clients}/${id}`, { method: "DELETE" }),
      patch(id, {}),
      rotate(id, "POST"),
      rotate(id, "DELETE"),
    ]) {
      expect((await asking).status).to.equal(404);
    }
    const log = await gateway.ask(`${clients}/${id}/audit_log`);
    const actions = log.json?.result.map(({ action }: { action: string }) => action);
    expect(actions).to.deep.equal(["deleted", "created"]);
  });

  it("listOAuthClientChanges() names person and time, newest first, from a cursor", async () => {
    const { client_id: id, client_secret: secret } = await made();
    await patch(id, { client_name: "Other" });
    const { json, text } = await gateway.ask(`${clients}/${id}/audit_log?limit=1`);
    expect(json?.result).to.deep.equal([
      {
        ...{ number: 1, at: new Date(START).toISOString(), action: "updated" },
        by: { type: "api_token", id: gateway.token.slice(3, 35) },
        changes: [{ field: "client_name", from: '"Build Bot"', to: '"Other"' }],
      },
    ]);
    const rest = await gateway.ask(
      `${clients}/${id}/audit_log?cursor=${json?.result_info?.cursor}`,
    );
    expect(rest.json?.result.map(({ number }: { number: number }) => number)).to.deep.equal([0]);
    expect(text + rest.text).to.not.contain(secret);
    for (const query of ["cursor=x", "limit=0", "limit=101"]) {
      expect((await gateway.ask(`${clients}/${id}/audit_log?${query}`)).status).to.equal(400);
    }
    expect((await gateway.ask(`${clients}/${"f".repeat(32)}/audit_log`)).status).to.equal(404);
  });

  it("another account's client is unknown", async () => {
    const { client_id: id } = await made();
    const other = await openAccount(gateway.actors, "Two");
    const token = await giveToken(gateway.actors, other, ALL_PERMISSIONS);
    const theirs = `/v4/accounts/${other}/oauth_clients/${id}`;
    const asked: [string, string, unknown?][] = [
      ["GET", theirs],
      ["PATCH", theirs, {}],
      ["DELETE", theirs],
      ["POST", `${theirs}/rotate_secret`],
      ["DELETE", `${theirs}/rotate_secret`],
      ["GET", `${theirs}/audit_log`],
      ["GET", `${clients}/${id}`],
    ];
    for (const [method, path, json] of asked) {
      const { status } = await gateway.ask(path, {
        method,
        token,
        ...(json !== undefined && { json }),
      });
      expect(status, `${method} ${path}`).to.equal(404);
    }
    expect((await gateway.ask(`${clients}/${id}`)).status).to.equal(200);
    expect((await gateway.ask(`${clients}/x`)).status).to.equal(400);
  });

  it("reading needs oauth-clients.read, writing oauth-clients.write", async () => {
    const { client_id: id } = await made();
    const read = await gateway.tokenWith("oauth-clients.read");
    const none = await gateway.tokenWith("account.write");
    const of = `${clients}/${id}`;
    for (const path of [clients, of, `${of}/audit_log`]) {
      expect((await gateway.ask(path, { token: read })).status).to.equal(200);
      const refused = await gateway.ask(path, { token: none });
      expect(refused.status).to.equal(403);
      expect(refused.json?.errors[0]?.message).to.contain("OAuth Clients Read");
    }
    const writes: [string, string, unknown?][] = [
      ["POST", clients, wanted],
      ["PATCH", of, {}],
      ["DELETE", of],
      ["POST", `${of}/rotate_secret`],
      ["DELETE", `${of}/rotate_secret`],
    ];
    for (const [method, path, json] of writes) {
      const sent = { method, token: read, ...(json !== undefined && { json }) };
      const refused = await gateway.ask(path, sent);
      expect(refused.status).to.equal(403);
      expect(refused.json?.errors[0]?.message).to.contain("OAuth Clients Write");
    }
  });

  it("listOAuthScopes() lists all scopes to any token", async () => {
    const token = await gateway.tokenWith("apps.read");
    const { json } = await gateway.ask("/v4/oauth/scopes", { token });
    expect(json?.result.map(({ id }: { id: string }) => id)).to.deep.equal(ALL_SCOPES);
    expect(json?.result[0]).to.deep.equal({
      ...{
        id: "browser-rendering.read",
        name: "Browser Rendering Read",
        category: "Browser Rendering",
      },
      description: "See crawls, their results and usage",
    });
    expect((await gateway.ask("/v4/oauth/scopes", { token: null })).status).to.equal(401);
  });
});
