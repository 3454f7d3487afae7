import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";

describe("home of the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());

  it("shows health, usage, activity and quick starts with the account's own values", async () => {
    await world.says("All is well");
    await world.says("Browser time today");
    await world.says("API token made");
    const text = await world.text();
    expect(text).to.contain(`/v4/accounts/${world.platform.accountId}/browser-rendering/pdf`);
    await world.audit("home");
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
