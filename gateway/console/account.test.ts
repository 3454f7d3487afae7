import { expect } from "chai";
import { until } from "../../scripts/testing/until.ts";
import { ConsoleWorld } from "./testing/console-world.ts";

describe("account in the console", function () {
  this.timeout(240_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());
  afterEach(() => world.checkFaults());

  it("makes a token with chosen permissions, changes it, gives it a new secret and revokes it", async () => {
    await world.open("account", "API tokens");
    await world.audit("tokens");
    await world.follow("New token");
    await world.heading("New token");
    await world.press("Make the token");
    await world.fill("Name", "printer");
    await world.press("Make the token");
    await world.says("Choose at least one permission.");
    await world.choose("Browser Rendering: Write", "radio");
    await world.audit("token-new");
    await world.press("Make the token");
    await world.says("It is not shown again");
    const token = await world.secret();
    const path = "/accounts?per_page=1";
    expect(await statusWith(token, path)).to.equal(200);

    await world.follow("Go to the token printer");
    await world.heading("printer");
    await world.audit("token");
    await world.fill("Name", "printer 2");
    await world.press("Save");
    await world.says("Saved.");
    await world.heading("printer 2");

    await world.openDialog("New secret");
    await world.confirm("New secret");
    await world.says("It is not shown again");
    const rolled = await world.secret();
    expect([await statusWith(token, path), await statusWith(rolled, path)]).to.deep.equal([
      401, 200,
    ]);

    await world.follow("API tokens");
    await world.says("2 tokens");
    await world.page.waitForFunction(
      `![...document.querySelectorAll('tbody [data-name="Last used"]')].at(0)?.innerText.includes("never")`,
    );
    // The newest is first.
    await world.openDialog("Revoke");
    await world.heading("Revoke printer 2?");
    await world.audit("token-revoke");
    await world.confirm("Revoke");
    await world.says("1 token");
    expect(await statusWith(rolled, path)).to.equal(401);
    await world.settled();
    expect(await world.text()).to.not.contain("printer 2");
  });

  it("invites a person, changes their roles and takes the invitation back", async () => {
    await world.open("account/members", "Members");
    await world.fill("Email", "ada@example.com");
    await world.press("Invite");
    await world.says("/signup?");
    await world.says("invited");
    await world.audit("members");
    await world.openDialog("Roles of ada@example.com");
    await world.choose("OAuth Client Write");
    await world.confirm("Save");
    await world.says("Member, OAuth Client Write");
    await world.openDialog("Take back");
    await world.confirm("Take back");
    await world.page.waitForFunction('!document.querySelector("table").innerText.includes("ada@")');
  });

  it("keeps what others changed in a token or in roles while the page was open", async () => {
    const policies = [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }];
    const made = await rest("POST", "/tokens", { name: "shared", policies });
    const path = `/tokens/${made.id}`;
    await world.open(`account${path}`, "shared");
    await world.choose("Artifacts: Read", "radio");
    await rest("PUT", path, { name: "renamed", policies, status: "disabled" });
    await world.press("Save");
    await world.says("Saved.");
    const changed = await rest("GET", path);
    expect([changed.name, changed.status]).to.deep.equal(["renamed", "disabled"]);
    const [policy] = changed.policies;
    expect(policy.permission_groups.map(({ id }: { id: string }) => id)).to.have.members([
      ...["apps.read", "artifacts.read"],
    ]);
    await world.heading("renamed");
    await world.choose("Active");
    await world.press("Save");
    await until("the token is active", async () => (await rest("GET", path)).status === "active");
    await rest("DELETE", path);

    const roles = ["Member", "OAuth Client Write"];
    const { id } = await rest("POST", "/members", { email: "bob@example.com", roles });
    await world.open("account/members", "Members");
    await world.says("Member, OAuth Client Write");
    await rest("PUT", `/members/${id}`, { roles: ["Member"] });
    await world.refresh();
    const shown = `[...document.querySelectorAll('[data-name="Roles"]')].at(-1)?.innerText`;
    await world.page.waitForFunction(`${shown} === "Member"`);
    await world.openDialog("Roles of bob@example.com");
    await world.choose("Administrator");
    await world.confirm("Save");
    await world.page.waitForFunction(`${shown}.includes("Administrator")`);
    const members = await rest("GET", "/members");
    const held = members.find((one: { id: string }) => one.id === id).roles;
    expect(held.map(({ name }: { name: string }) => name)).to.have.members([
      ...["Member", "Administrator"],
    ]);
    await rest("DELETE", `/members/${id}`);
  });

  it("ends a session elsewhere", async () => {
    const { url } = world.platform;
    const elsewhere = await world.elsewhere();
    await elsewhere.goto(`${url}/console`);
    await world.open("account/sessions", "Sessions");
    await world.says("2 sessions");
    await world.audit("sessions");
    const rows = await world.page.$$("tbody tr");
    for (const row of rows) {
      const text = await row.evaluate(
        (element) => (element as unknown as { innerText: string }).innerText,
      );
      if (text.includes("elsewhere")) await (await row.$("button"))?.click();
    }
    await world.confirm("End");
    await world.says("1 session");
    await elsewhere.goto(`${url}/console`);
    expect(elsewhere.url()).to.contain("/login");
  });

  it("lets a member leave, but not the last Super Administrator", async () => {
    const sure = 'dialog ::-p-aria(Leave[role="button"])';
    await world.open("account/members", "Members");
    await world.openDialog("Leave");
    await (await world.page.waitForSelector(sure))?.click();
    await world.says("give this role to another member first");

    const email = "leaver@example.com";
    const { url, accountId } = world.platform;
    const page = await world.stranger(email);
    const { invitation_url: invitation } = await rest("POST", "/members", {
      ...{ email, roles: ["Member"] },
    });
    await page.goto(invitation.replace("/signup?", "/login?"));
    await page.type('[name="password"]', "correct horse");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await page.goto(`${url}/console/${accountId}/account/members`);
    await (await page.waitForSelector('aria/Leave[role="button"]'))?.click();
    await (await page.waitForSelector(sure))?.click();
    await page.waitForFunction(
      `location.pathname.startsWith("/console/") && !location.pathname.includes("${accountId}")`,
    );
    const members: { email: string }[] = await rest("GET", "/members");
    expect(members.map((one) => one.email)).to.not.include(email);
  });

  async function rest(method: string, path: string, json?: unknown) {
    const { status, body } = await world.platform.rest(method, path, json);
    expect(status, JSON.stringify(body)).to.be.oneOf([200, 201]);
    return body.result;
  }

  async function statusWith(token: string, path: string): Promise<number> {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${world.platform.url}/v4${path}`, { headers })).status;
  }
});
