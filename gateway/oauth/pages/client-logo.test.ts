import { createHash } from "node:crypto";
import { expect } from "chai";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { until } from "../../../scripts/testing/until.ts";
import { authorizationPath } from "../testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "../testing/oauth-world.ts";

const LOGO = "https://logos.example.com/logo.png";
const BYTES = Buffer.from("\x89PNG\r\n\x1a\n and more", "latin1");
const HASH = createHash("sha256").update(BYTES).digest("hex");

describe("logo of a client", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let base: string;
  let person: Person;
  before(async () => {
    world = await oauthWorld();
    [base = ""] = world.urls;
    person = new Person(base);
    await person.open("/login");
    await person.signIn(world.owner);
  });
  after(() => world?.stop());

  const consent = (client: TestClient) => person.open(authorizationPath(client));
  const findCopy = async ({ client_id }: TestClient, uri = LOGO) =>
    (await world.bus.actors.call(clientLogo, client_id, "find", { uri })).hash;

  /** Sends the actor a fetched logo, as the worker does. */
  async function report({ client_id }: TestClient, uri = LOGO): Promise<void> {
    const logo = { type: "image/png" as const, hash: HASH, base64: BYTES.toString("base64") };
    await until("the copy is there", async () => {
      const told = { uri, attempt: 1, logo };
      await world.bus.actors.send(clientLogo, client_id, "fetched", told);
      return (await findCopy({ client_id, client_secret: "" }, uri)) !== undefined;
    });
  }

  it("is our copy from our own origin, and no image until the copy exists", async () => {
    const client = await world.makeClient({ logo_uri: LOGO });
    const before = await consent(client);
    expect(before.text).to.contain(`<span class="letter"`).and.not.to.contain("<img");
    await report(client);
    const { text, headers } = await consent(client);
    const path = `/oauth2/logos/${client.client_id}/${HASH}`;
    expect(text).to.contain(`<img src="${path}"`);
    for (const page of [before.text, text]) expect(page).to.not.contain("logos.example.com");
    const policy = headers.get("content-security-policy");
    expect(policy).to.contain("img-src data: 'self';").and.not.to.contain("example.com");

    const copy = await fetch(base + path);
    expect(Buffer.from(await copy.arrayBuffer())).to.deep.equal(BYTES);
    const said = (name: string) => copy.headers.get(name);
    expect(said("content-type")).to.equal("image/png");
    expect(said("x-content-type-options")).to.equal("nosniff");
    expect(said("content-security-policy")).to.contain("default-src 'none'").and.contain("sandbox");
    expect(said("cache-control")).to.contain("immutable");
    expect(said("set-cookie")).to.equal(null);
  });

  it("is served at one address, until its client is deleted or gets another logo", async () => {
    const client = await world.makeClient({ logo_uri: LOGO });
    await report(client);
    const status = async (path: string) => (await fetch(`${base}/oauth2/logos/${path}`)).status;
    const { client_id: id } = client;
    expect(await status(`${id}/${HASH}`)).to.equal(200);
    for (const path of [`${id}/${"0".repeat(64)}`, `${id}/x`, `${"0".repeat(32)}/${HASH}`, "x/y"]) {
      expect(await status(path), path).to.equal(404);
    }
    const posted = await fetch(`${base}/oauth2/logos/${id}/${HASH}`, { method: "POST" });
    expect(posted.status).to.equal(405);
    const account = `/accounts/${world.accountId}/oauth_clients/${id}`;
    await world.api(account, { method: "PATCH", json: { logo_uri: `${LOGO}?2` } });
    await until("the old copy is gone", async () => (await status(`${id}/${HASH}`)) === 404);
    await report(client, `${LOGO}?2`);
    await world.api(account, { method: "DELETE" });
    await until("the copy is gone", async () => (await status(`${id}/${HASH}`)) === 404);
  });
});
