import { expect } from "chai";
import * as oidc from "openid-client";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
} from "./testing/oauth-world.ts";

const METHODS = {
  client_secret_basic: (secret: string) => oidc.ClientSecretBasic(secret),
  client_secret_post: (secret: string) => oidc.ClientSecretPost(secret),
  none: () => oidc.None(),
};

describe("authorization flows, by a public client library", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world.stop());

  for (const method of ["client_secret_basic", "client_secret_post", "none"] as const) {
    it(`a ${method} client gets tokens, uses them and refreshes them`, async () => {
      const client = await world.makeClient({ token_endpoint_auth_method: method });
      const library = await discovered(world, client, method);
      const verifier = oidc.randomPKCECodeVerifier();
      const nonce = oidc.randomNonce();
      const state = oidc.randomState();
      const url = oidc.buildAuthorizationUrl(library, {
        redirect_uri: REDIRECT_URI,
        scope: "openid email account.read artifacts.read artifacts.write",
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        nonce,
        state,
      });
      const person = new Person(world.urls[0] ?? "");
      await person.open(url.href);
      expect(person.seen.url).to.match(/\/login\?interaction=/);
      await person.signIn(world.owner);
      expect(person.seen.text).to.contain("Build Bot").and.to.contain("Artifacts Write");
      const { url: back } = await person.submit({ decision: "allow" });
      expect(back).to.match(/^http:\/\/127\.0\.0\.1:1\/callback\?code=/);

      const tokens = await oidc.authorizationCodeGrant(library, new URL(back), {
        pkceCodeVerifier: verifier,
        expectedNonce: nonce,
        expectedState: state,
        idTokenExpected: true,
      });
      expect(tokens.access_token).to.match(/^tl_at_/);
      expect(tokens.expires_in).to.be.within(3_590, 3_600);
      expect(tokens.scope?.split(" ")).to.include("artifacts.write");
      const token = tokens.access_token;
      expect((await world.api(`/accounts/${world.accountId}`, { token })).status).to.equal(200);
      const { body } = await world.api("/accounts", { token });
      expect(body.result.map(({ id }: { id: string }) => id)).to.deep.equal([world.accountId]);
      expect((await world.api(`/accounts/${"0".repeat(32)}`, { token })).status).to.equal(404);
      const refused = await world.api(`/accounts/${world.accountId}/oauth_clients`, { token });
      expect(refused.status).to.equal(403);

      const { sub } = tokens.claims() ?? { sub: "" };
      const info = await oidc.fetchUserInfo(library, token, sub);
      expect(info).to.deep.equal({ sub, email: world.owner.email, email_verified: false });

      const refreshed = await oidc.refreshTokenGrant(library, tokens.refresh_token ?? "");
      expect(refreshed.refresh_token)
        .to.match(/^tl_rt_/)
        .and.not.to.equal(tokens.refresh_token);
      expect(refreshed.claims()?.sub).to.equal(sub);
      await world.api("/accounts", { token: refreshed.access_token });

      const introspected = await oidc.tokenIntrospection(library, refreshed.access_token);
      expect(introspected).to.include({ active: true, client_id: client.client_id, sub });
      await oidc.tokenRevocation(library, refreshed.access_token);
      const gone = await world.api("/accounts", { token: refreshed.access_token });
      expect(gone.status).to.equal(401);
      expect((await world.api("/accounts", { token })).status).to.equal(200);
      await oidc.tokenRevocation(library, refreshed.refresh_token ?? "");
      expect((await world.api("/accounts", { token })).status).to.equal(401);
    });
  }
});

async function discovered(
  world: OAuthWorld,
  { client_id, client_secret }: TestClient,
  method: keyof typeof METHODS,
) {
  return oidc.discovery(
    new URL(world.urls[0] ?? ""),
    client_id,
    undefined,
    METHODS[method](client_secret),
    { execute: [oidc.allowInsecureRequests] },
  );
}
