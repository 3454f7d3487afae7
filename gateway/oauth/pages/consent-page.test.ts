import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { authorizationPath, makePublic } from "../testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "../testing/oauth-world.ts";

/** Returns a person who signed up by an invitation and was then removed, so that they belong to no account. */
async function personWithoutAccount(world: OAuthWorld): Promise<Person> {
  const members = `/accounts/${world.accountId}/members`;
  const json = { email: "nobody@example.com", roles: ["Member"] };
  const { body } = await world.api(members, { method: "POST", json });
  const person = new Person(world.urls[0] ?? "");
  await person.open(`/signup${new URL(body.result.invitation_url).search}`);
  await person.signUp({ password: "correct horse" });
  const { result } = (await world.api(`${members}?per_page=50`)).body;
  const { id } = result.find(({ email }: { email: string }) => email === json.email);
  expect((await world.api(`${members}/${id}`, { method: "DELETE" })).status).to.equal(200);
  return person;
}

describe("consent page", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let person: Person;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());
  beforeEach(async () => {
    client = await world.makeClient({
      scopes: ["account.read", "artifacts.write", "apps.read"],
      optional_scopes: ["artifacts.write", "apps.read"],
    });
    person = new Person(world.urls[0] ?? "");
    await person.open("/login");
    await person.signIn(world.owner);
    await person.open(authorizationPath(client));
  });

  const isTicked = (value: string) => {
    const [box = ""] =
      new RegExp(`<input [^>]*value="${value}"[^>]*>`).exec(person.seen.text) ?? [];
    expect(box, value).to.contain('type="checkbox"');
    return / checked/.test(box);
  };
  const ticked = () => ["artifacts.write", "apps.read", world.accountId].map(isTicked);

  it("checks all scopes at first, and next time those that the person allowed", async () => {
    expect(ticked()).to.deep.equal([true, true, true]);
    await person.submit({ decision: "allow", scope: ["apps.read"] });
    expect(person.seen.url).to.contain("code=");
    await person.open(authorizationPath(client, { prompt: "consent" }));
    expect(ticked()).to.deep.equal([false, true, true]);
  });

  it("lets a person of no account only deny what is in an account, and allow the rest", async () => {
    const nobody = await personWithoutAccount(world);
    const scopes = ["openid", "account.read", "apps.read"];
    const open = await makePublic(world, { scopes, optional_scopes: ["apps.read"] });
    await until("they belong to no account", async () => {
      const { text } = await nobody.open(authorizationPath(open, { scope: "account.read" }));
      return text.includes("You belong to no account");
    });
    expect([nobody.seen.status, nobody.seen.text.includes("Allow</button>")]).to.deep.equal([
      403,
      false,
    ]);
    // A form of an earlier page may still be sent.
    const allowed = await nobody.submit({ decision: "allow", shown: "account.read | " });
    expect([allowed.status, allowed.text.includes("You belong to no account")]).to.deep.equal([
      403,
      true,
    ]);
    await nobody.submit({ decision: "deny" });
    expect(new URL(nobody.seen.url).searchParams.get("error")).to.equal("access_denied");

    await nobody.open(authorizationPath(open, { scope: "openid apps.read" }));
    const ticked = await nobody.submit({ decision: "allow" });
    expect([ticked.status, ticked.text.includes("Untick")]).to.deep.equal([400, true]);
    await nobody.submit({ decision: "allow", scope: [] });
    expect(new URL(nobody.seen.url).searchParams.get("code")).to.be.a("string");
  });

  it("keeps the person's choice when a part of it is refused", async () => {
    const choice = { decision: "allow", scope: ["apps.read"] };
    const none = await person.submit({ ...choice, account: [] });
    expect([none.status, none.text.includes("Choose at least one account.")]).to.deep.equal([
      400,
      true,
    ]);
    expect(ticked()).to.deep.equal([false, true, false]);
    // With a wrong form mark the page forgets the choice, because the form may come from another person.
    const stale = await person.submit({ ...choice, account: world.accountId, mark: "x" });
    expect(stale.status).to.equal(403);
    expect(ticked()).to.deep.equal([true, true, true]);
    await person.submit({ decision: "allow" });
    expect(person.seen.url).to.contain("code=");
  });
});
