import { expect } from "chai";
import { until } from "../../scripts/testing/until.ts";
import { authorizationPath, authorize, ClientCalls, makePublic } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  type Person,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";

const PEOPLE = 6;
const GRANTS_EACH = 2;

interface Tokens {
  access_token: string;
  refresh_token: string;
}

/** A person who allowed the client access, with the resulting tokens. */
interface Granted {
  person: Person;
  grants: Tokens[];
  /** An API token that was created with one of the client's access tokens. */
  apiToken: string;
  /** An authorization code that the client has not redeemed yet. */
  code: string | null;
}

describe("a client that is deleted", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let client: TestClient;
  let path: string;
  let all: Granted[];
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    calls = new ClientCalls(world);
  });
  after(() => world?.stop());
  beforeEach(async () => {
    const scopes = ["openid", "email", "account.write"];
    client = await makePublic(world, { scopes, optional_scopes: [] });
    path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
    all = await Promise.all(Array.from({ length: PEOPLE }, granted));
    for (const { access_token } of tokensOf(all)) {
      expect(await calls.opened(access_token)).to.deep.equal([200, 200, 200, 200]);
    }
  });

  it("loses the grants of all users, at once and at every gateway", async () => {
    const [waiting] = all;
    await waiting?.person.open(authorizationPath(client, { prompt: "consent" }));
    expect(waiting?.person.seen.url).to.contain("/oauth2/consent");
    expect((await world.api(path, { method: "DELETE" })).status).to.equal(200);

    for (const { access_token, refresh_token } of tokensOf(all)) {
      expect(await calls.opened(access_token)).to.deep.equal([401, 401, 401, 401]);
      for (const gateway of [0, 1]) {
        const sent = { by: client, gateway };
        for (const { status, body } of await Promise.all([
          calls.refresh(refresh_token, sent),
          calls.post("introspect", { token: access_token }, sent),
        ])) {
          expect([status, body.error]).to.deep.equal([401, "invalid_client"]);
        }
      }
    }
    for (const { apiToken, code } of all) {
      for (const gateway of [0, 1]) {
        const { status } = await world.api("/accounts", { token: apiToken, gateway });
        expect(status).to.equal(401);
        const redeemed = await calls.redeem(code, { by: client, gateway });
        expect([redeemed.status, redeemed.body.error]).to.deep.equal([401, "invalid_client"]);
      }
    }

    // A person with an open consent page is not redirected to the deleted client. Nor is a person who starts a new
    // authorization request.
    const { person } = waiting as Granted;
    const { origin } = new URL(world.urls[0] ?? "");
    await person.submit({ decision: "allow" });
    expect(new URL(person.seen.url).origin).to.equal(origin);
    for (const through of world.urls) {
      person.through = through;
      const { status, url } = await person.open(authorizationPath(client));
      expect([status, new URL(url).origin]).to.deep.equal([400, origin]);
    }
  });

  it("leaves no token valid that was refreshed during the deletion", async () => {
    const refreshing = tokensOf(all).map(({ refresh_token }, index) =>
      calls.refresh(refresh_token, { by: client, gateway: index % 2 }),
    );
    const deleting = world.api(path, { method: "DELETE" });
    const answers = await Promise.all(refreshing);
    expect((await deleting).status).to.equal(200);
    for (const { status, body } of answers) {
      if (status !== 200) expect([400, 401]).to.include(status);
      else expect(await calls.opened(body.access_token)).to.deep.equal([401, 401, 401, 401]);
    }
  });

  it("is shown to its users as a client without access", async () => {
    const { person } = all[0] as Granted;
    const seen = async () => (await person.open("/profile/clients")).text;
    await until("both grants are listed", async () => (await seen()).includes("grants are open"));
    await world.api(path, { method: "DELETE" });
    expect(await seen())
      .to.contain("A client that was deleted")
      .and.contain("its grants ended with it")
      .and.not.match(/ are open| is open/);
    await person.submit({ client: client.client_id }, { action: "/profile/clients/revoke" });
    expect(await seen()).to.contain("No client may do anything in your name");
  });

  async function granted(): Promise<Granted> {
    const { person } = await newPerson(world);
    const code = async () => (await authorize(person, client)).get("code");
    const grants: Tokens[] = [];
    while (grants.length < GRANTS_EACH) {
      grants.push((await calls.redeem(await code(), { by: client })).body);
    }
    const [{ access_token: token = "" } = {}] = grants;
    const { body } = await world.api("/accounts", { token });
    const made = await world.api(`/accounts/${body.result[0].id}/tokens`, {
      method: "POST",
      token,
      json: { name: "mine", policies: [{ effect: "allow", permission_groups: [READING] }] },
    });
    const { value } = made.body.result as Wire;
    expect((await world.api("/accounts", { token: value, gateway: 1 })).status).to.equal(200);
    return { person, grants, apiToken: value, code: await code() };
  }
});

const READING = { id: "account.read" };
const tokensOf = (all: readonly Granted[]) => all.flatMap(({ grants }) => grants);
