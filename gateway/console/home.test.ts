import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";

const CLIENT = {
  client_name: "Mail digest",
  grant_types: ["authorization_code"],
  response_types: ["code"],
  token_endpoint_auth_method: "client_secret_basic",
  redirect_uris: ["https://digest.example.com/callback"],
  scopes: ["openid", "apps.read"],
};

describe("home of the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());

  it("shows health, usage, activity and quick starts with the account's own values", async () => {
    const { platform } = world;
    await platform.rest("POST", "/artifacts/namespaces/default/repos", { name: "parcel" });
    await platform.rest("POST", "/oauth_clients", CLIENT);
    await platform.deploy("hooks", "export default { fetch: () => new Response('ok') };");
    await world.open("", "Home");
    await world.says("All is well");
    await world.says("Browser time today");
    await world.says("API token made");
    // The quick starts appear only after every list above them has loaded.
    await world.says(`/v4/accounts/${world.platform.accountId}/browser-rendering/pdf`);
    await world.audit("home");
    await world.page.setViewport({ width: 360, height: 780 });
    await world.press("Menu");
    await world.audit("home-menu");
    await world.follow("Do it here");
    await world.heading("Rendering");
  });

  it("says that the platform answers in no words of its own, where a proxy stands before it", async () => {
    {
      await using _proxy = await world.intercept(
        (request) => new URL(request.url()).pathname === "/healthz",
        (request) =>
          void request.respond({ status: 502, contentType: "text/html", body: "<h1>502" }),
      );
      await world.open("", "Home");
      await world.says("The answer has the status 502, and says nothing that can be shown.");
    }
    await world.open("", "Home");
    await world.says("All is well");
  });

  it("says why it did not sign out, and signs out then", async () => {
    await world.page.setOfflineMode(true);
    await world.press("Sign out");
    await world.says("The platform cannot be reached. Is it running?");
    world.checkFaults();
    await world.page.setOfflineMode(false);
    await world.press("Sign out");
    await world.heading("Sign in");
    await world.signIn();
  });

  it("gives nothing to a page at another port of its host, to which browsers send the cookie", async () => {
    const { url, accountId } = world.platform;
    const members = `${url}/v4/accounts/${accountId}/members`;
    const page = await world.elsewhere();
    const server = createServer((_request, response) => {
      response.setHeader("Content-Type", "text/html").end("<!doctype html><title>other</title>");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const sent = JSON.stringify({ email: "evil@example.com", roles: ["Administrator"] });
    const outcomes = await page.evaluate(`(async () => {
      const headers = { "X-Trunkline-Session": "use", "Content-Type": "application/json" };
      const body = ${JSON.stringify(sent)};
      const of = (request) => request.then((answer) => answer.type, () => "refused");
      const credentials = "include";
      return [
        await of(fetch("${members}", { credentials, headers })),
        await of(fetch("${members}", { credentials })),
        await of(fetch("${members}", { method: "POST", credentials, headers, body })),
        await of(fetch("${members}", { method: "POST", credentials, mode: "no-cors", body })),
      ];
    })()`);
    // The last request is sent with the cookie, but Cross-Origin-Resource-Policy hides its response.
    expect(outcomes).to.deep.equal(["refused", "refused", "refused", "refused"]);
    const shown = page.waitForNavigation();
    await page.evaluate(`(() => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: "${members}", enctype: "text/plain" });
      const field = document.createElement("input");
      Object.assign(field, { name: ${JSON.stringify(sent.slice(0, -1))} + ',"x":"', value: '"}' });
      form.append(field);
      document.body.append(form);
      form.submit();
    })()`);
    await shown;
    expect(await page.evaluate("document.body.innerText")).to.contain('"success":false');
    const { body } = await world.platform.rest("GET", "/members");
    expect(body.result).to.have.length(1);
    server.close();
  });

  it("leads to sign-in without a session, and back to where it was asked for", async () => {
    await world.press("Sign out");
    await world.heading("Sign in");
    const path = `${world.platform.accountId}/rendering?x=1`;
    const { email, password } = world.platform.credentials.user;
    await world.page.goto(`${world.platform.url}/console/${path}`);
    await world.fill("Email", email);
    await world.fill("Password", password);
    await world.press("Sign in");
    await world.page.waitForSelector("nav");
    expect(world.page.url()).to.equal(`${world.platform.url}/console/${path}`);
    world.checkFaults();
  });
});
