import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";

describe("OAuth clients in the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  let secret: string;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());
  afterEach(() => world.checkFaults());

  it("registers a client, says what is missing, and shows its secret once", async () => {
    await world.open("oauth-clients", "OAuth clients");
    await world.says("There is no OAuth client yet");
    await world.audit("clients-none");
    await world.follow("New client");
    await world.heading("New OAuth client");
    await world.fill("Name", "Build Bot");
    await world.fill("Redirect URLs", "http://bot.example.com/callback");
    await world.press("Register the client");
    await world.says("Select at least one scope.");
    await world.choose("Account Settings Read");
    await world.choose("Offline access");
    await world.press("Add the console's, to try the client here");
    await world.page.waitForFunction(
      '[...document.querySelectorAll("textarea")].some(({ value }) => value.endsWith("/oauth-clients/try-it"))',
    );
    await world.press("Register the client");
    await world.says("Expected");
    await world.audit("client-new");
    await world.fill("Redirect URLs", "https://bot.example.com/callback");
    await world.press("Register the client");
    await world.says("Build Bot is registered");
    secret = await world.secret();
    await world.follow("Try it");
  });

  it("tries the client out: allows it, gets tokens, and looks into one", async () => {
    await world.says("1. Let the console be a redirect URL");
    await world.press("Add it to the client");
    await world.says("1. Ask for authorization");
    await world.audit("client-try");
    await world.press("Begin");
    await world.press("Allow");
    await world.says("2. Exchange the code for tokens");
    await world.fill("Client secret", "wrong");
    await world.press("Get tokens");
    await world.says("invalid_client");
    await world.fill("Client secret", secret);
    await world.press("Get tokens");
    await world.says("access_token");
    await world.press("Introspect");
    await world.says('"active": true');
    await world.audit("client-tried");
  });

  it("shows who has allowed it, and who has changed it", async () => {
    await world.follow("People and changes");
    await world.says("1 person of this account");
    await world.says("redirect_uris");
    await world.audit("client-people");
  });

  it("rotates the secret: both are shown by their end and their last use, then the old one goes", async () => {
    await world.follow("Overview");
    await world.openDialog("Rotate");
    await world.confirm("Rotate");
    await world.says("It is not shown again");
    const second = await world.secret();
    await world.says(`…${secret.slice(-4)}`);
    await world.says(`…${second.slice(-4)}`);
    await world.says("Both secrets are valid.");
    await world.openDialog("Replace the new secret");
    await world.confirm("Replace the new secret");
    await world.page.waitForFunction(`!document.body.innerText.includes("…${second.slice(-4)}")`);
    await world.says(`…${(await world.secret()).slice(-4)}`);
    await world.audit("client");
    await world.openDialog("Delete the old secret");
    await world.confirm("Delete the old secret");
    await world.says("Rotating makes a second secret.");
    expect(await world.text()).to.not.contain(`…${secret.slice(-4)}`);
  });

  it("has the record of a domain to copy, and says what its promotion lacks", async () => {
    await world.follow("Domain and visibility");
    await world.fill("Client URL", "https://bot.invalid");
    await world.press("Verify the domain");
    await world.says("bot.invalid");
    await world.says("TXT");
    await world.says("A logo URL is missing");
    await world.audit("client-domain");
  });

  it("changes settings", async () => {
    await world.follow("Settings");
    await world.fill("Name", "Build Bot 2");
    await world.press("Save");
    await world.says("Saved.");
    await world.heading("Build Bot 2");
    await world.audit("client-settings");
  });

  it("keeps what others changed in a client while its settings were open", async () => {
    const { pathname } = new URL(world.page.url());
    const path = `/oauth_clients/${/oauth-clients\/(\w+)/.exec(pathname)?.[1]}`;
    const change = { scopes: ["account.read"], policy_uri: "https://bot.example.com/policy" };
    await world.open(pathname.slice(pathname.indexOf("oauth-clients")), "Build Bot 2");
    await world.choose("Secret in the body", "radio");
    const changed = await world.platform.rest("PATCH", path, change);
    expect(changed.status, JSON.stringify(changed.body)).to.equal(200);
    await world.refresh();
    await world.settled();
    await world.press("Save");
    await world.says("Saved.");
    const { result } = (await world.platform.rest("GET", path)).body;
    expect(result).to.deep.include({
      ...change,
      ...{ client_name: "Build Bot 2", token_endpoint_auth_method: "client_secret_post" },
    });
    // The form goes on from what is stored now.
    await world.fill("Name", "Build Bot 3");
    await world.press("Save");
    await world.heading("Build Bot 3");
    await world.fill("Name", "Build Bot 2");
    await world.press("Save");
    await world.heading("Build Bot 2");
    const last = (await world.platform.rest("GET", path)).body.result;
    expect(last).to.deep.include(change);
  });

  it("deletes a client only when its name is typed", async () => {
    await world.follow("Overview");
    await world.press("Delete the client");
    await world.fill('Type "Build Bot 2" to confirm', "Build Bot");
    const button = 'dialog ::-p-aria(Delete the client[role="button"])';
    const isDisabled = "document.querySelector('dialog button[type=submit]').disabled";
    await world.page.waitForSelector(button);
    expect(await world.page.evaluate(isDisabled)).to.equal(true);
    await world.audit("client-delete");
    await world.fill('Type "Build Bot 2" to confirm', "Build Bot 2");
    await world.confirm("Delete the client");
    await world.says("There is no OAuth client yet");
  });

  it("says what to do about a client that is not there", async () => {
    await world.open(`oauth-clients/${"0".repeat(32)}`, "OAuth client");
    await world.says("It may have been deleted, or the address is mistyped.");
    await world.audit("client-missing");
    await world.open("nothing/here", "There is no such page");
  });
});
