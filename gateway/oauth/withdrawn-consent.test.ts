import { expect } from "chai";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { grantList } from "../../schemas/oauth/grant-list.ts";
import { authorizationPath, authorize } from "./testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "./testing/oauth-world.ts";

describe("consent that is withdrawn while the client gets its code", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let person: Person;
  /** Runs before a new grant is added to the person's list. */
  let beforeAdding: ((userId: string) => Promise<unknown>) | undefined;

  const meddle = (actors: ActorClient): ActorClient => {
    const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
      if (message === "addGrant") await beforeAdding?.(key);
      return actors.call(contract, key, message, ...rest);
    };
    return { call, send: actors.send.bind(actors), run: actors.run.bind(actors) };
  };

  before(async () => {
    world = await oauthWorld({ meddle });
    client = await world.makeClient();
    person = new Person(world.urls[0] ?? "");
    await person.open("/login");
    await person.signIn(world.owner);
  });
  after(() => world?.stop());

  it("denies the request instead of issuing a code, on the way from the consent page and without it", async () => {
    const { client_id: clientId } = client;
    expect((await authorize(person, client)).get("code")).to.be.a("string");
    for (const changes of [{ prompt: "consent" }, { prompt: "none" }]) {
      beforeAdding = undefined;
      await authorize(person, client);
      person.trail.length = 0;
      beforeAdding = (userId) =>
        world.bus.actors.call(grantList, userId, "revokeClient", { clientId });
      const answer = await authorize(person, client, changes);
      expect(answer.get("error"), person.seen.text).to.equal("access_denied");
      expect(person.trail.join()).to.not.contain("code=");
    }
    beforeAdding = undefined;
    await person.open(authorizationPath(client));
    expect(person.seen.url, "the person is asked again").to.contain("/oauth2/consent");
  });
});
