import { expect } from "chai";
import { authorizationPath } from "../testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "../testing/oauth-world.ts";

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
