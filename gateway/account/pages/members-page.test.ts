import { expect } from "chai";
import { account } from "../../../schemas/account/account.ts";
import { MEMBERS_PER_ACCOUNT_MAX } from "../../../schemas/account/limits.ts";
import { ALL_PERMISSIONS, type Role } from "../../../schemas/account/permissions.ts";
import { until } from "../../../scripts/testing/until.ts";
import { newPerson, type OAuthWorld, oauthWorld, Person } from "../../oauth/testing/oauth-world.ts";

const MEMBERS = "/profile/members";
const INVITE = { action: `${MEMBERS}/invite` };
const CHANGE = { action: `${MEMBERS}/change` };

describe("members page", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let owner: Person;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
  });
  after(() => world?.stop());

  const list = async (person = owner) =>
    (await person.open(`${MEMBERS}?account=${world.accountId}`)).text;
  const open = (id: string, person = owner) =>
    person.open(`${MEMBERS}/change?account=${world.accountId}&member=${id}`);
  const invite = async (email: string, roles: readonly Role[], person = owner) => {
    await list(person);
    return person.submit({ email, role: [...roles] }, INVITE);
  };
  const invitationOf = (text: string) => /signup\?invitation=(tlin_[\w-]+)/.exec(text)?.[1] ?? "";
  const members = async () =>
    (await world.api(`/accounts/${world.accountId}/members`)).body.result as {
      id: string;
      email: string;
      status: string;
      roles: { id: string }[];
    }[];
  const idOf = async (email: string) =>
    (await members()).find((member) => member.email === email)?.id ?? "";

  /** Returns a person who signed up by an invitation with these roles. */
  async function joined(email: string, roles: readonly Role[]) {
    const { text } = await invite(email, roles);
    const person = new Person(world.urls[0] ?? "");
    await person.open(`/signup?invitation=${invitationOf(text)}`);
    await person.signUp({ password: "correct horse" });
    await until(
      `${email} sees the account`,
      async () =>
        (await person.open("/profile/clients")).text.includes("Members") ===
        roles.some((role) => role.includes("Administrator")),
    );
    return person;
  }

  it("an invitation is shown once, in a response and not in a URL, and makes a member", async () => {
    const { status, url, text } = await invite("one@example.com", ["Member", "OAuth Client Write"]);
    const token = invitationOf(text);
    expect([status, url]).to.deep.equal([200, `${world.urls[0]}${MEMBERS}/invite`]);
    expect(owner.trail.join()).to.not.contain(token);
    expect(world.logs.join()).to.not.contain(token);
    expect(await list())
      .to.contain("one@example.com")
      .and.to.not.contain(token);
    const [invited] = (await members()).slice(-1);
    expect([invited?.status, invited?.roles.map(({ id }) => id)]).to.deep.equal([
      "pending",
      ["OAuth Client Write", "Member"],
    ]);
    const person = new Person(world.urls[1] ?? "");
    await person.open(`/signup?invitation=${token}`);
    await person.signUp({ password: "correct horse" });
    expect((await members()).at(-1)?.status).to.equal("accepted");
    expect(world.logs.join()).to.not.contain(token);
    const again = await invite("one@example.com", ["Member"]);
    expect([again.status, again.text]).to.deep.equal([409, again.text]);
    expect(again.text).to.contain("They are a member.");
  });

  it("an invalid invitation shows the error beside the form, which keeps the input", async () => {
    for (const [email, roles, said] of [
      ["nobody", ["Member"], "Enter an e-mail address."],
      ["", ["Member"], "Enter an e-mail address."],
      ["new@example.com", [], "Choose at least one role"],
      ["new@example.com", ["King"], "Choose at least one role"],
    ] as const) {
      const { status, text } = await invite(email, roles as readonly Role[]);
      expect([status, text.includes(said)], `${email} ${roles}`).to.deep.equal([400, true]);
      expect(text).to.contain(`value="${email}"`);
    }
    const script = await invite(`"><script>@example.com`, ["Member"]);
    expect(script.text).to.not.contain("<script>");
  });

  it("changes of roles and removals of members apply at once at every gateway", async () => {
    const person = await joined("two@example.com", ["Administrator"]);
    const id = await idOf("two@example.com");
    person.through = world.urls[1];
    expect(await list(person)).to.contain("Members of Main");
    await open(id);
    await owner.submit({ role: ["Member"], change: "roles" }, CHANGE);
    expect(owner.seen.text).to.contain("Saved.");
    expect(await list(person)).to.contain("For administrators");
    expect(person.seen.status).to.equal(403);
    await open(id);
    await owner.submit({ change: "remove" }, CHANGE);
    expect(owner.seen.text).to.contain("Removed.").and.to.not.contain("two@example.com");
    expect((await open(id)).text).to.contain("This entry no longer exists");
    await invite("two@example.com", ["Member"]);
    await open(await idOf("two@example.com"));
    await owner.submit({ change: "remove" }, CHANGE);
    expect(await idOf("two@example.com")).to.equal("");
  });

  it("an Administrator changes all but Super Administrators", async () => {
    const person = await joined("three@example.com", ["Administrator"]);
    const ownerId = await idOf(world.owner.email);
    expect(await list(person)).to.not.contain(`member=${ownerId}`);
    expect(person.seen.text).to.match(/value="Super Administrator"[^>]* disabled/);
    const made = await invite("four@example.com", ["Super Administrator"], person);
    expect([made.status, made.text.includes("Only a Super Administrator")]).to.deep.equal([
      403,
      true,
    ]);
    for (const change of ["remove", "roles"]) {
      await open(ownerId, person);
      const { status, text } = await person.submit({ role: "Member", change }, CHANGE);
      expect([status, text.includes("Only a Super Administrator")]).to.deep.equal([403, true]);
    }
    expect((await invite("four@example.com", ["Member"], person)).status).to.equal(200);
  });

  it("the last Super Administrator can neither go nor become less", async () => {
    const id = await idOf(world.owner.email);
    for (const change of ["remove", "roles"]) {
      await open(id);
      const { status, text } = await owner.submit({ role: ["Administrator"], change }, CHANGE);
      expect([status, text.includes("They are the last Super Administrator.")]).to.deep.equal([
        409,
        true,
      ]);
    }
    expect((await members())[0]?.roles.map((role) => role.id)).to.deep.equal([
      "Super Administrator",
    ]);
  });

  it("is for administrators only: other members see a refusal and no names", async () => {
    const guest = new Person(world.urls[0] ?? "");
    expect((await guest.open(MEMBERS)).url).to.contain("/login");
    const { person: stranger } = await newPerson(world);
    const member = await joined("five@example.com", ["Member"]);
    const id = await idOf(world.owner.email);
    for (const person of [stranger, member]) {
      for (const see of [() => list(person), () => open(id, person)]) {
        await see();
        expect(person.seen.status).to.equal(403);
        expect(person.seen.text).to.not.contain(world.owner.email);
      }
      // Sends a form with the mark of the person's own account page, changed to name another account.
      await person.open("/profile/clients");
      const form = { account: world.accountId, member: id, change: "remove", email: "x@y.org" };
      for (const action of [INVITE.action, CHANGE.action]) {
        await person.post(action, { ...form, role: "Member" });
        expect(person.seen.status).to.equal(403);
      }
    }
    // The person administers their own account, so its members page works.
    expect((await stranger.open(MEMBERS)).text).to.contain("(you)");
    expect((await stranger.open(`${MEMBERS}?account=x`)).status).to.equal(403);
    expect((await members()).some(({ email }) => email === "x@y.org")).to.equal(false);
  });

  it("a forged form changes nothing", async () => {
    const id = await idOf("five@example.com");
    for (const mark of ["", "x"]) {
      await list();
      const invited = await owner.submit({ email: "x@y.org", mark }, INVITE);
      await open(id);
      const removed = await owner.submit({ change: "remove", mark }, CHANGE);
      for (const { status, text } of [invited, removed]) {
        expect([status, text.includes("open for too long")]).to.deep.equal([403, true]);
      }
    }
    // A form mark of another person changes nothing either.
    const { person: other } = await newPerson(world);
    const its = /name="mark" value="([^"]+)"/.exec((await other.open(MEMBERS)).text)?.[1] ?? "";
    await list();
    expect((await owner.submit({ email: "x@y.org", mark: its }, INVITE)).status).to.equal(403);
    expect(await idOf("five@example.com")).to.equal(id);
    expect(await idOf("x@y.org")).to.equal("");
  });

  it("a result in the address that no change has is not shown", async () => {
    for (const done of ["constructor", "toString", "__proto__", "other"]) {
      const { status, text } = await owner.open(`${MEMBERS}?done=${done}`);
      expect([done, status, text.includes('role="status"')]).to.deep.equal([done, 200, false]);
    }
    expect((await owner.open(`${MEMBERS}?done=removed`)).text).to.contain("Removed.");
  });

  it("a person with two accounts can switch between them", async () => {
    const { person, email, password } = await newPerson(world);
    const { text } = await invite(email, ["Administrator"]);
    const elsewhere = new Person(world.urls[0] ?? "");
    await elsewhere.open(`/login?invitation=${invitationOf(text)}`);
    await elsewhere.signIn({ email, password });
    await until("they see both", async () =>
      (await person.open(MEMBERS)).text.includes("You also administer"),
    );
    expect(person.seen.text).to.contain(`${MEMBERS}?account=${world.accountId}`);
    expect(await list(person)).to.contain("Members of Main");
  });

  it("the last invitation of the limit is accepted, and one more refused", async () => {
    const by = { permissions: ALL_PERMISSIONS };
    const open = MEMBERS_PER_ACCOUNT_MAX - (await members()).length - 1;
    for (let number = 0; number < open; number++) {
      const id = number.toString(16).padStart(32, "0");
      const asked = { id, email: `${number}@example.com`, roles: ["Member" as const], by };
      const invitation = { ...asked, secretHash: "5".repeat(64) };
      await world.bus.actors.call(account, world.accountId, "invite", invitation);
    }
    expect((await invite("last@example.com", ["Member"])).status).to.equal(200);
    const { status, text } = await invite("past@example.com", ["Member"]);
    expect(status).to.equal(409);
    expect(text).to.contain(`${MEMBERS_PER_ACCOUNT_MAX} members and invitations`);
  });
});
