import { expect } from "chai";
import { ALL_PERMISSIONS, ALL_ROLES, type Role } from "../../schemas/account/permissions.ts";
import { until } from "../../scripts/testing/until.ts";
import { authorizationPath, ClientCalls } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";

/** Whether each role allows to read clients, to write clients, to read members and to write members. */
const OPENED: Record<Role, [boolean, boolean, boolean, boolean]> = {
  "Super Administrator": [true, true, true, true],
  Administrator: [true, true, true, true],
  "OAuth Client Write": [true, true, false, false],
  Member: [true, false, true, false],
};

describe("roles of the person whom a client acts for", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let account: string;
  let client: TestClient;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    calls = new ClientCalls(world);
    account = `/accounts/${world.accountId}`;
    client = await world.makeClient({ scopes: ALL_PERMISSIONS, optional_scopes: [] });
  });
  after(() => world?.stop());

  it("the table has a row for each role", () => {
    expect(Object.keys(OPENED)).to.deep.equal(ALL_ROLES);
  });

  for (const role of ALL_ROLES) {
    it(`give the client what they give the person: ${role}`, async () => {
      const { token } = await memberWith(role);
      const never = { never: "good" };
      for (const gateway of [0, 1]) {
        const asked = await Promise.all([
          world.api(`${account}/oauth_clients`, { token, gateway }),
          world.api(`${account}/oauth_clients`, { token, gateway, method: "POST", json: never }),
          world.api(`${account}/members`, { token, gateway }),
          world.api(`${account}/members`, { token, gateway, method: "POST", json: never }),
        ]);
        // If the role may write, the request is refused only because its body is invalid.
        const opened = asked.map(({ status }) => status);
        const good = [200, 400, 200, 400];
        expect(opened).to.deep.equal(good.map((one, i) => (OPENED[role][i] ? one : 403)));
      }
    });
  }

  it("the log of a changed client names the person and the client they used", async () => {
    const { token, userId } = await memberWith("OAuth Client Write");
    const { client_id } = await world.makeClient();
    const path = `${account}/oauth_clients/${client_id}`;
    const json = { client_name: "Renamed" };
    expect((await world.api(path, { method: "PATCH", token, json })).status).to.equal(200);
    await world.api(`${path}/rotate_secret`, { method: "POST", token, gateway: 1 });
    const { body } = await world.api(`${path}/audit_log`, { token, gateway: 1 });
    const by = { type: "user", id: userId, clientId: client.client_id };
    const log = body.result.map(({ action, by: author }: Wire) => [action, author.type]);
    expect(log).to.deep.equal([
      ["secret_added", "user"],
      ["updated", "user"],
      ["created", "api_token"],
    ]);
    for (const entry of body.result.slice(0, 2)) expect(entry.by).to.deep.equal(by);
  });

  async function memberWith(role: Role) {
    const { person, email, password } = await newPerson(world);
    const json = { email, roles: [role] };
    const { body: invited } = await world.api(`${account}/members`, { method: "POST", json });
    await person.open(`/login${new URL(invited.result.invitation_url).search}`);
    await person.signIn({ email, password });
    await until("they see the account", async () => {
      await person.open(authorizationPath(client));
      return person.seen.text.includes(world.accountId);
    });
    await person.submit({ decision: "allow" });
    const code = new URL(person.seen.url).searchParams.get("code");
    const { body } = await calls.redeem(code, { by: client });
    const members = (await world.api(`${account}/members?per_page=50`)).body.result as Wire[];
    const { id: userId } = members.find((member) => member.email === email);
    return { token: body.access_token as string, userId };
  }
});
