import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { REQUEST_WINDOW_MS } from "../../schemas/limits.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../schemas/oauth/command-line.ts";
import { authorize, type ClientAnswer, ClientCalls, type Sent } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  type TestClient,
} from "./testing/oauth-world.ts";
import { newGrantId, newTokenText } from "./tokens/token-text.ts";

const LIMIT = 4;

describe("the limit of refreshes", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let owner: Person;
  before(async () => {
    world = await oauthWorld({ config: { requestsPerWindow: LIMIT } });
    calls = new ClientCalls(world);
    owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
  });
  after(() => world?.stop());

  it("counts the clients of an account together, and refuses neither a revocation nor another account", async () => {
    const clients = [await world.makeClient(), await world.makeClient()] as const;
    const [first, second] = clients.map((by) => ({ by })) as [Sent, Sent];
    const code = (await authorize(owner, first.by)).get("code");
    const other = (await authorize(owner, second.by)).get("code");
    const given = await calls.redeem(code, first);
    const refreshed = await calls.refresh(given.body.refresh_token, first);
    const unknown = await calls.refresh(newTokenText("refresh", newGrantId()), first);
    expect([given.status, refreshed.status, unknown.body.error]).to.deep.equal([
      ...[200, 200],
      "invalid_grant",
    ]);
    let { body } = await calls.redeem(other, second);
    for (let refresh = 3; refresh <= LIMIT; refresh++) {
      const answer = await calls.refresh(body.refresh_token, second);
      expect(answer.status).to.equal(200);
      body = answer.body;
    }
    for (const sent of [first, second]) {
      checkRefused(await calls.refresh(body.refresh_token, sent));
    }
    // A code would expire before the window ends.
    const last = (await authorize(owner, first.by)).get("code");
    expect((await calls.redeem(last, first)).status).to.equal(200);
    expect((await calls.post("revoke", { token: body.refresh_token }, second)).status).to.equal(
      200,
    );
    const { access_token: token } = refreshed.body;
    expect((await calls.opened(token))[1]).to.equal(200);
    // A replay is still found.
    expect((await calls.redeem(code, first)).body.error).to.equal("invalid_grant");
    expect((await calls.opened(token))[1]).to.equal(401);

    const { person } = await newPerson(world);
    expect((await useCommandLine(person)).status).to.equal(200);
  });

  it("counts the programs of a person together where the client has no secret", async () => {
    const [{ person: one }, { person: other }] = [await newPerson(world), await newPerson(world)];
    let { body } = await useCommandLine(one);
    for (let refresh = 1; refresh <= LIMIT; refresh++) {
      const answer = await refreshCommandLine(body.refresh_token);
      expect(answer.status).to.equal(200);
      body = answer.body;
    }
    checkRefused(await refreshCommandLine(body.refresh_token));
    const { body: again } = await useCommandLine(one);
    checkRefused(await refreshCommandLine(again.refresh_token));
    const { body: others } = await useCommandLine(other);
    expect((await refreshCommandLine(others.refresh_token)).status).to.equal(200);
  });

  function checkRefused({ status, headers, body }: ClientAnswer): void {
    const windowS = REQUEST_WINDOW_MS / 1_000;
    expect([status, body]).to.deep.equal([
      429,
      {
        error: "rate_limited",
        error_description: `Cannot refresh: ${LIMIT} refreshes in ${windowS} seconds are used up`,
      },
    ]);
    expect(Number(headers.get("retry-after"))).to.be.within(1, windowS);
    expect(headers.get("cache-control")).to.equal("no-store");
  }

  const COMMAND_LINE: TestClient = { client_id: COMMAND_LINE_CLIENT_ID, client_secret: "" };
  const client_id = COMMAND_LINE_CLIENT_ID;
  const sent: Sent = { by: COMMAND_LINE, headers: {} };

  async function useCommandLine(person: Person): Promise<ClientAnswer> {
    const code_verifier = randomBytes(32).toString("base64url");
    const code_challenge = createHash("sha256").update(code_verifier).digest("base64url");
    const redirect_uri = "http://127.0.0.1:1/callback";
    const asked = { redirect_uri, code_challenge, code_challenge_method: "S256" };
    const code = (await authorize(person, COMMAND_LINE, asked)).get("code");
    return calls.redeem(code, sent, { client_id, redirect_uri, code_verifier });
  }

  const refreshCommandLine = (token: string) => calls.refresh(token, sent, { client_id });
});
