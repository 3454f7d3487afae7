import { expect } from "chai";
import type { LiveUpdates } from "../../actors/runtime/bus/live.ts";
import { account } from "../../schemas/account/account.ts";
import { ALL_PERMISSIONS, type Role } from "../../schemas/account/permissions.ts";
import { oauthClient } from "../../schemas/oauth/oauth-client.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { until } from "../../scripts/testing/until.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";
import { readTokenText, type TokenAddress } from "./tokens/token-text.ts";

/**
 * Counts simulated deaths of the host. A host that dies after it stored a change does not notify the gateways. So
 * after each death, the next notification of each actor is dropped.
 */
let deaths = 0;
const hearing = (live: LiveUpdates): LiveUpdates => ({
  async subscribe(contract, key, signal) {
    const heard = await live.subscribe(contract, key, signal);
    return (async function* () {
      let survived = deaths;
      for await (const update of heard) {
        if (survived === deaths) yield update;
        survived = deaths;
      }
    })();
  },
});

const LESS: Role[] = ["OAuth Client Write"];

describe("a revocation that was stored without its notification", function () {
  this.timeout(300_000);
  let world: OAuthWorld;
  let client: TestClient;
  let person: Person;
  let tokens: { access_token: string; refresh_token: string };
  let code: string;
  let grant: TokenAddress;
  let members: string;
  let memberId: string;
  before(async () => {
    const hear = (live: LiveUpdates, gateway: number) => (gateway === 1 ? hearing(live) : live);
    // The clock of this gateway stands still, so that no entry of its caches expires.
    const standing = Date.now();
    const nowOf = (gateway: number) => (gateway === 1 ? () => standing : Date.now);
    world = await oauthWorld({ gateways: 2, hear, nowOf });
    members = `/accounts/${world.accountId}/members`;
  });
  after(() => world?.stop());

  beforeEach(async () => {
    client = await world.makeClient({
      scopes: ["account.read", "artifacts.read"],
      optional_scopes: [],
    });
    const made = await newPerson(world);
    ({ person } = made);
    const json = { email: made.email, roles: ["Administrator"] };
    const { body } = await world.api(members, { method: "POST", json });
    await person.open(`/login${new URL(body.result.invitation_url).search}`);
    await person.signIn(made);
    const fields = { client_id: client.client_id, response_type: "code", state: "s" };
    const query = new URLSearchParams({ ...fields, redirect_uri: REDIRECT_URI });
    await until("they see the account", async () => {
      await person.open(`/oauth2/auth?${query}`);
      return person.seen.text.includes(world.accountId);
    });
    await person.submit({ decision: "allow", account: [world.accountId] });
    code = new URL(person.seen.url).searchParams.get("code") ?? "";
    tokens = await post("token", codeFields());
    const address = readTokenText(tokens.access_token);
    if (!address) throw new Error("no token");
    grant = address;
    const all = await world.bus.actors.call(account, world.accountId, "listMembers", {});
    memberId = all.members.find(({ email }) => email === made.email)?.userId ?? "";
    expect(await seen()).to.equal(200);
    // The gateway answers the second introspection from its cache.
    for (let times = 0; times < 2; times++) expect(await isActive()).to.equal(true);
  });

  const call = {
    revoke: () => world.bus.actors.call(oauthGrant, grant.grantId, "revoke", {}),
    revokeAccess: () =>
      world.bus.actors.call(oauthGrant, grant.grantId, "revokeAccess", { hash: grant.hash }),
    removeClient: () =>
      world.bus.actors.call(oauthClient, client.client_id, "remove", {
        accountId: world.accountId,
        by: { type: "system" as const, id: "" },
      }),
    removeMember: () =>
      world.bus.actors.call(account, world.accountId, "removeMember", {
        id: memberId,
        by: { permissions: ALL_PERMISSIONS },
      }),
  };
  const giveBack = (token: string) => post("revoke", { token });
  const clientPath = () => `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;

  for (const [name, end, expected] of [
    ["a refresh token given back", () => giveBack(tokens.refresh_token), 401],
    ["an access token given back", () => giveBack(tokens.access_token), 401],
    ["a code used twice", () => post("token", codeFields()), 401],
    ["a client deleted", () => world.api(clientPath(), { method: "DELETE" }), 401],
    [
      "a scope taken from a client",
      () => world.api(clientPath(), { method: "PATCH", json: { scopes: ["artifacts.read"] } }),
      403,
    ],
    ["a member removed", () => world.api(`${members}/${memberId}`, { method: "DELETE" }), 401],
    [
      "other roles of a member",
      () => world.api(`${members}/${memberId}`, { method: "PUT", json: { roles: LESS } }),
      403,
    ],
    ["a member removed on the page", () => removeOnPage(), 401],
    ["a client revoked by the person", () => revokeOnPage(), 401],
  ] as const) {
    it(`is notified before the response: ${name}`, async () => {
      deaths += 1;
      await end();
      await isSoon(expected);
    });
  }

  for (const [name, end, again] of [
    ["a refresh token", call.revoke, () => giveBack(tokens.refresh_token)],
    ["an access token", call.revokeAccess, () => giveBack(tokens.access_token)],
    ["a code used twice", call.revoke, () => post("token", codeFields())],
    ["a client", call.removeClient, () => world.api(clientPath(), { method: "DELETE" })],
    [
      "a member",
      call.removeMember,
      () => world.api(`${members}/${memberId}`, { method: "DELETE" }),
    ],
  ] as const) {
    it(`is notified when it is repeated: ${name}`, async () => {
      deaths += 1;
      await end();
      expect(await seen()).to.equal(200);
      await again();
      await isSoon(401);
    });
  }

  const codeFields = () => ({
    grant_type: "authorization_code",
    code,
    redirect_uri: REDIRECT_URI,
  });

  /** Returns the status of a request with the token at the gateway that receives only half of the notifications. */
  async function seen(): Promise<number> {
    return (await world.api(members, { token: tokens.access_token, gateway: 1 })).status;
  }

  /** Waits until the gateway answers with `status`. It can learn the change only by a notification. */
  async function isSoon(status: number): Promise<void> {
    await until(`answered ${status}`, async () => (await seen()) === status);
    if (status !== 401) return;
    await until("inactive", async () => !(await isActive()));
  }

  /** Returns whether an introspection at the same gateway reports the token as active. */
  async function isActive(): Promise<boolean> {
    return (await post("introspect", { token: tokens.access_token }, 1)).active === true;
  }

  async function revokeOnPage() {
    await person.open("/profile/clients");
    await person.submit({ client: client.client_id }, { action: "/profile/clients/revoke" });
  }

  async function removeOnPage() {
    const owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
    const query = new URLSearchParams({ account: world.accountId, member: memberId });
    await owner.open(`/profile/members/change?${query}`);
    await owner.submit({ change: "remove" }, { action: "/profile/members/change" });
    expect(owner.seen.text).to.contain("Removed.");
  }

  async function post(path: string, fields: Record<string, string>, gateway = 0): Promise<Wire> {
    const { client_id, client_secret } = client;
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const answer = await fetch(`${world.urls[gateway]}/oauth2/${path}`, {
      method: "POST",
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams(fields),
    });
    const text = await answer.text();
    return text ? JSON.parse(text) : {};
  }
});
