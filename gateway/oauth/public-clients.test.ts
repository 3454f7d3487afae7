import { expect } from "chai";
import { makePublic } from "./testing/client-calls.ts";
import { newPerson, type OAuthWorld, oauthWorld, REDIRECT_URI } from "./testing/oauth-world.ts";

describe("public clients", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());

  it("may be authorized by anyone, for their own accounts only", async () => {
    const client = await makePublic(world);
    const { person } = await newPerson(world);
    const { client_id, client_secret } = client;
    const fields = { client_id, response_type: "code", redirect_uri: REDIRECT_URI };
    await person.open(`/oauth2/auth?${new URLSearchParams(fields)}`);
    expect(person.seen.text).to.contain("bot.example.com").and.not.to.contain(world.accountId);
    await person.submit({ decision: "allow" });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const answer = await fetch(`${world.urls[0]}/oauth2/token`, {
      method: "POST",
      headers: {
        Authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`,
      },
      body: new URLSearchParams({
        grant_type: "authorization_code",
        redirect_uri: REDIRECT_URI,
        code,
      }),
    });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    const { body } = await world.api("/accounts", { token });
    expect(body.result).to.have.length(1);
    expect(body.result[0].id).not.to.equal(world.accountId);
    const theirs = await world.api(`/accounts/${world.accountId}`, { token });
    expect(theirs.status).to.equal(404);
  });
});
