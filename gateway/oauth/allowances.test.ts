import { expect } from "chai";
import { authorize } from "./testing/client-calls.ts";
import { newPerson, type OAuthWorld, oauthWorld, Person } from "./testing/oauth-world.ts";

describe("allowances of an OAuth client", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());

  it("listOAuthClientAllowances() names the members who allow it, and what, until they take it back", async () => {
    const client = await world.makeClient();
    const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}/allowances`;
    expect((await world.api(path)).body.result).to.deep.equal([]);
    const person = new Person(world.urls[0] ?? "");
    await person.open("/login");
    await person.signIn(world.owner);
    await authorize(person, client, { scope: "openid artifacts.read artifacts.write" });
    const { body } = await world.api(path);
    expect(body.result).to.have.length(1);
    expect(body.result[0].user.email).to.equal(world.owner.email);
    expect(body.result[0].scopes).to.include("artifacts.read");
    expect(body.result[0].is_for_this_account).to.equal(true);
    const made = await world.api(`/accounts/${world.accountId}/tokens`, {
      method: "POST",
      json: {
        name: "clients alone",
        policies: [{ effect: "allow", permission_groups: [{ id: "oauth-clients.read" }] }],
      },
    });
    const shown = await world.api(path, { token: made.body.result.value });
    expect(shown.body.result[0].user).to.deep.equal({ id: body.result[0].user.id });
    await person.open("/profile/clients");
    await person.submit({ client: client.client_id }, { action: "/profile/clients/revoke" });
    expect((await world.api(path)).body.result).to.deep.equal([]);
  });

  it("listOAuthClientAllowances() refuses another account, an unknown client and a token without the permission", async () => {
    const client = await world.makeClient();
    const of = (id: string) => `/accounts/${world.accountId}/oauth_clients/${id}/allowances`;
    expect((await world.api(of("0".repeat(32)))).status).to.equal(404);
    const { person } = await newPerson(world);
    expect(person.seen.status).to.equal(200);
    const made = await world.api(`/accounts/${world.accountId}/tokens`, {
      method: "POST",
      json: {
        name: "a",
        policies: [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }],
      },
    });
    const refused = await world.api(of(client.client_id), { token: made.body.result.value });
    expect(refused.status).to.equal(403);
  });
});
