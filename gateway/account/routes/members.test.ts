import { expect } from "chai";
import { INVITATION_MS } from "../../../actors/account/account/members.ts";
import { account } from "../../../schemas/account/account.ts";
import { MEMBERS_PER_ACCOUNT_MAX } from "../../../schemas/account/limits.ts";
import { ALL_PERMISSIONS, ALL_ROLES, ROLES } from "../../../schemas/account/permissions.ts";
import { user } from "../../../schemas/account/user.ts";
import {
  giveToken,
  openAccount,
  START,
  type TestGateway,
  testGateway,
} from "../../testing/test-gateway.ts";
import { readInvitation } from "../invitation-text.ts";

const USER = "9".repeat(32);
const EMAIL = "ada@example.com";

describe("routes of members", () => {
  let gateway: TestGateway;
  let members: string;
  beforeEach(async () => {
    gateway = await testGateway();
    members = `/v4/accounts/${gateway.accountId}/members`;
  });
  afterEach(() => gateway.stop());

  const invite = (json: unknown = { email: EMAIL, roles: ["Member"] }) =>
    gateway.ask(members, { method: "POST", json });
  const update = (id: string, json: unknown) =>
    gateway.ask(`${members}/${id}`, { method: "PUT", json });
  const remove = (id: string) => gateway.ask(`${members}/${id}`, { method: "DELETE" });
  const list = async () => (await gateway.ask(members)).json?.result;

  /** Accepts an invitation as the sign-in page does for a person who has signed up. */
  async function accept(token: string, { userId = USER, email = EMAIL } = {}) {
    const invitation = readInvitation(token);
    if (!invitation) throw new Error("no invitation");
    const { accountId, id, secretHash } = invitation;
    const person = { id: userId, email, passwordHash: "scrypt$1", accounts: [] };
    await gateway.actors.call(user, email, "register", person);
    await gateway.actors.call(account, accountId, "acceptInvitation", {
      id,
      secretHash,
      userId,
      email,
    });
    await gateway.actors.settled();
  }

  async function joined(roles: readonly string[], person = { userId: USER, email: EMAIL }) {
    const { json } = await invite({ email: person.email, roles });
    await accept(json?.result.invitation_token, person);
  }

  const role = (name: (typeof ALL_ROLES)[number]) => ({ id: name, name, ...ROLES[name] });

  it("inviteMember() returns an invitation that is shown once and makes a member", async () => {
    const { status, json } = await invite({
      email: "Ada@Example.com",
      roles: [{ id: "Member", name: "Member" }],
    });
    expect(status).to.equal(200);
    const { invitation_token: token, invitation_url: url, ...shown } = json?.result ?? {};
    expect(token).to.match(/^tlin_[0-9a-f]{32}_[0-9a-f]{32}_[\w-]{43}$/);
    expect(url).to.equal(`http://127.0.0.1:8787/signup?invitation=${token}`);
    expect(shown).to.deep.equal({
      ...{ id: token.slice(38, 70), email: EMAIL, status: "pending", roles: [role("Member")] },
      expires_at: new Date(START + INVITATION_MS).toISOString(),
    });
    const listed = await gateway.ask(members);
    expect(listed.json?.result.at(-1)).to.deep.equal(shown);
    expect(listed.text + JSON.stringify(gateway.logs)).to.not.contain(token.slice(-43));
    await accept(token);
    const member = { id: USER, email: EMAIL, status: "accepted", roles: [role("Member")] };
    expect((await list()).slice(1)).to.deep.equal([member]);
    expect((await gateway.ask(`${members}/${USER}`)).json?.result).to.deep.equal(member);
    const { accounts } = await gateway.actors.call(user, EMAIL, "get", {});
    expect(accounts).to.deep.equal([{ accountId: gateway.accountId, roles: ["Member"] }]);
    expect((await invite()).status).to.equal(409);
  });

  it("inviteMember() refuses each fault with its pointer and what would be valid", async () => {
    const faults: [unknown, string, RegExp][] = [
      [{ roles: ["Member"] }, "/email", /e-mail address/],
      [{ email: "ada", roles: ["Member"] }, "/email", /e-mail address/],
      [{ email: EMAIL }, "/roles", /Missing/],
      [{ email: EMAIL, roles: [] }, "/roles", /an array of 1 to \d+ items/],
      [{ email: EMAIL, roles: ["King"] }, "/roles/0", /Super Administrator/],
      [{ email: EMAIL, roles: [{ id: "King" }] }, "/roles/0", /Administrator/],
      [{ email: EMAIL, roles: ["Member", { id: "Member" }] }, "/roles", /no duplicates/],
      [{ email: EMAIL, roles: ["Member"], status: "rejected" }, "/status", /accepted, pending/],
      [{ email: EMAIL, roles: ["Member"], policies: [] }, "/policies", /Unknown field/],
    ];
    for (const [json, pointer, expected] of faults) {
      const { status, json: answer } = await invite(json);
      expect(status, pointer).to.equal(400);
      expect(answer?.errors[0]?.source?.pointer).to.equal(pointer);
      expect(answer?.errors[0]?.message).to.match(expected);
    }
  });

  it("inviteMember() accepts the last of the limit and refuses one more", async () => {
    for (let number = 1; number < MEMBERS_PER_ACCOUNT_MAX; number++) {
      const by = { permissions: ALL_PERMISSIONS };
      const id = number.toString(16).padStart(32, "0");
      const invitation = { id, email: `${number}@example.com`, roles: ["Member" as const], by };
      await gateway.actors.call(account, gateway.accountId, "invite", {
        ...{ ...invitation, secretHash: "5".repeat(64) },
      });
    }
    const { status, json } = await invite();
    expect(status).to.equal(409);
    expect(json?.errors[0]?.code).to.equal(1007);
    expect(json?.errors[0]?.message).to.contain(String(MEMBERS_PER_ACCOUNT_MAX));
  });

  it("listMembers() answers in pages, and forgets invitations that expired", async () => {
    await invite();
    const page = await gateway.ask(`${members}?page=2&per_page=1`);
    expect(page.json?.result).to.have.length(1);
    expect(page.json?.result_info).to.include({ count: 1, total_count: 2, total_pages: 2 });
    gateway.clock.now += INVITATION_MS;
    expect(await list()).to.have.length(1);
  });

  it("updateMember() changes roles of members and of invitations", async () => {
    const { json } = await invite();
    const roles = ["OAuth Client Write", "Member"];
    const invited = await update(json?.result.id, { roles });
    expect(invited.json?.result.roles.map(({ id }: { id: string }) => id)).to.deep.equal(roles);
    await accept(json?.result.invitation_token);
    const changed = await update(USER, { roles: ["Administrator"] });
    expect(changed.json?.result).to.deep.include({
      status: "accepted",
      roles: [role("Administrator")],
    });
    await gateway.actors.settled();
    const { accounts } = await gateway.actors.call(user, EMAIL, "get", {});
    expect(accounts[0]?.roles).to.deep.equal(["Administrator"]);
    expect((await update("f".repeat(32), { roles })).status).to.equal(404);
    expect((await update("x", { roles })).status).to.equal(400);
    expect((await update(USER, { roles: [] })).status).to.equal(400);
  });

  it("removeMember() removes members and invitations, and answers unknown the second time", async () => {
    await joined(["Member"]);
    const { json } = await invite({ email: "eve@example.com", roles: ["Member"] });
    for (const id of [USER, json?.result.id]) {
      expect((await remove(id)).json?.result).to.deep.equal({ id });
      expect((await remove(id)).status).to.equal(404);
      expect((await gateway.ask(`${members}/${id}`)).status).to.equal(404);
    }
    await gateway.actors.settled();
    expect((await gateway.actors.call(user, EMAIL, "get", {})).accounts).to.deep.equal([]);
    expect(await list()).to.have.length(1);
  });

  it("the last Super Administrator can neither go nor become less", async () => {
    const [{ id }] = await list();
    for (const answer of [await remove(id), await update(id, { roles: ["Administrator"] })]) {
      expect(answer.status).to.equal(409);
      expect(answer.json?.errors[0]?.message).to.contain("last Super Administrator");
    }
    await joined(["Super Administrator"]);
    expect((await update(id, { roles: ["Administrator"] })).status).to.equal(200);
    expect((await remove(USER)).status).to.equal(409);
  });

  it("a token can grant or remove only roles within its own permissions", async () => {
    const token = await gateway.tokenWith("account.write");
    const [{ id }] = await list();
    const asked: [string, string, unknown?][] = [
      ["POST", members, { email: EMAIL, roles: ["OAuth Client Write"] }],
      ["PUT", `${members}/${id}`, { roles: ["Member"] }],
      ["DELETE", `${members}/${id}`],
    ];
    for (const [method, path, json] of asked) {
      const { status, json: answer } = await gateway.ask(path, {
        method,
        token,
        ...(json !== undefined && { json }),
      });
      expect(status).to.equal(403);
      expect(answer?.errors[0]?.message).to.contain("OAuth Clients Write");
    }
  });

  it("an Administrator's own token, or one of a Super Administrator, makes nobody a Super Administrator", async () => {
    await joined(["Administrator"]);
    const [{ id: owner }] = await list();
    const { actors, accountId } = gateway;
    const [theirs, owners] = [
      await giveToken(actors, accountId, ALL_PERMISSIONS, { userId: USER }),
      await giveToken(actors, accountId, ALL_PERMISSIONS, { userId: owner }),
    ];
    const raise = { method: "PUT", json: { roles: ["Super Administrator"] } };
    const raised = await gateway.ask(`${members}/${USER}`, { ...raise, token: theirs });
    expect(raised.status).to.equal(403);
    expect(raised.json?.errors[0]?.message).to.contain("only a Super Administrator");
    const secret = `/v4/accounts/${accountId}/tokens/${owners.slice(3, 35)}/value`;
    const rolled = await gateway.ask(secret, { method: "PUT", token: theirs });
    expect(rolled.status).to.equal(403);
    expect(rolled.json?.errors[0]?.message).to.contain("only a Super Administrator");
    const ownerless = await giveToken(actors, accountId, ALL_PERMISSIONS);
    const theirSecret = `/v4/accounts/${accountId}/tokens/${ownerless.slice(3, 35)}/value`;
    expect((await gateway.ask(theirSecret, { method: "PUT", token: theirs })).status).to.equal(403);
    expect((await gateway.ask(secret, { method: "PUT", token: owners })).status).to.equal(200);
    expect((await gateway.ask(`${members}/${USER}`, raise)).status).to.equal(200);
    const own = `/v4/accounts/${accountId}/tokens/${theirs.slice(3, 35)}/value`;
    expect((await gateway.ask(own, { method: "PUT", token: theirs })).status).to.equal(200);
  });

  it("another account's members are unknown", async () => {
    await joined(["Member"]);
    const other = await openAccount(gateway.actors, "Two");
    const token = await giveToken(gateway.actors, other, ALL_PERMISSIONS);
    const theirs = `/v4/accounts/${other}/members/${USER}`;
    for (const path of [theirs, `${members}/${USER}`]) {
      expect((await gateway.ask(path, { token })).status).to.equal(404);
      expect((await gateway.ask(path, { token, method: "DELETE" })).status).to.equal(404);
    }
  });

  it("listRoles() lists the permissions of each role", async () => {
    const { json } = await gateway.ask(`/v4/accounts/${gateway.accountId}/roles`);
    expect(json?.result).to.deep.equal(ALL_ROLES.map(role));
    const [, , clients, member] = json?.result ?? [];
    expect(clients.permissions).to.deep.equal(["oauth-clients.write"]);
    expect(member.permissions).to.include("apps.read").and.not.include("apps.write");
  });

  it("reading needs account.read, writing account.write", async () => {
    const read = await gateway.tokenWith("account.read");
    const none = await gateway.tokenWith("apps.write");
    const [{ id }] = await list();
    for (const path of [members, `${members}/${id}`, `/v4/accounts/${gateway.accountId}/roles`]) {
      expect((await gateway.ask(path, { token: read })).status).to.equal(200);
      expect((await gateway.ask(path, { token: none })).status).to.equal(403);
    }
    const roles = ["Member"];
    const asked: [string, string, unknown?][] = [
      ["POST", members, { email: EMAIL, roles }],
      ["PUT", `${members}/${id}`, { roles }],
      ["DELETE", `${members}/${id}`],
    ];
    for (const [method, path, json] of asked) {
      const sent = { method, token: read, ...(json !== undefined && { json }) };
      expect((await gateway.ask(path, sent)).status).to.equal(403);
    }
  });

  it("readInvitation() reads a valid invitation and rejects other text", async () => {
    const { json } = await invite();
    const token: string = json?.result.invitation_token;
    expect(readInvitation(token)).to.include({ accountId: gateway.accountId, id: json?.result.id });
    for (const wrong of [
      "",
      token.slice(1),
      `${token}x`,
      token.slice(0, -1),
      token.toUpperCase(),
    ]) {
      expect(readInvitation(wrong)).to.equal(undefined);
    }
  });
});
