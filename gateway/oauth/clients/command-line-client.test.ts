import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { ALL_PERMISSIONS, PERMISSIONS } from "../../../schemas/account/permissions.ts";
import {
  COMMAND_LINE_CLIENT_ID,
  COMMAND_LINE_SCOPES,
} from "../../../schemas/oauth/command-line.ts";
import { newPerson, type OAuthWorld, oauthWorld, REDIRECT_URI } from "../testing/oauth-world.ts";

describe("command line as an OAuth client", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());

  it("gives the command line any part of the permissions of a new user's role", async () => {
    const { person } = await newPerson(world);
    const verifier = randomBytes(32).toString("base64url");
    const fields = {
      client_id: COMMAND_LINE_CLIENT_ID,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      scope: COMMAND_LINE_SCOPES.join(" "),
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    };
    const tokens = async (scope?: string[]) => {
      await person.open(`/oauth2/auth?${new URLSearchParams(fields)}`);
      await person.submit({ decision: "allow", ...(scope && { scope }) });
      const code = new URL(person.seen.url).searchParams.get("code") ?? "";
      const body = new URLSearchParams({
        grant_type: "authorization_code",
        client_id: COMMAND_LINE_CLIENT_ID,
        redirect_uri: REDIRECT_URI,
        code_verifier: verifier,
        code,
      });
      const answer = await fetch(`${world.urls[0]}/oauth2/token`, { method: "POST", body });
      return ((await answer.json()) as { access_token: string }).access_token;
    };
    const token = await tokens();
    const { body } = await world.api("/accounts", { token });
    const path = `/accounts/${body.result[0].id}`;
    const permission_groups = ALL_PERMISSIONS.map((id) => ({ id, name: PERMISSIONS[id] }));
    const json = { name: "mine", policies: [{ effect: "allow", permission_groups }] };
    expect((await world.api(`${path}/tokens`, { method: "POST", token, json })).status).to.equal(
      200,
    );
    expect((await world.api(`${path}/oauth_clients`, { token })).status).to.equal(200);
    const less = await tokens([]);
    expect((await world.api(`${path}/oauth_clients`, { token: less })).status).to.equal(403);
  });
});
