import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { account } from "../../schemas/account/account.ts";
import { ALL_PERMISSIONS } from "../../schemas/account/permissions.ts";
import { session } from "../../schemas/account/session.ts";
import { START, type TestGateway, testGateway } from "../testing/test-gateway.ts";
import { newInvitation } from "./invitation-text.ts";
import { newSessionText, sessionAddress } from "./pages/browser-cookies.ts";

const HOUR_MS = 3_600_000;

/** Follows the events of a crawl, which is the connection of a credential that outlives its request. */
describe("isCallerStillAllowed()", () => {
  let gateway: TestGateway;
  let job: string;
  beforeEach(async () => {
    gateway = await testGateway();
    job = gateway.crawls.add(gateway.accountId, { status: "running", total: 3 });
  });
  afterEach(() => gateway.stop());

  const policiesFor = (permission: string) => [
    { effect: "allow", permission_groups: [{ id: permission }] },
  ];
  const whole = { name: "ci", policies: policiesFor("browser-rendering.read") };
  const tokens = () => `/v4/accounts/${gateway.accountId}/tokens`;
  const newToken = async (): Promise<{ id: string; value: string }> => {
    const { status, json, text } = await gateway.ask(tokens(), { method: "POST", json: whole });
    expect(status, text).to.equal(200);
    return json?.result;
  };
  const put = async (path: string, json: object) => {
    const { status, text } = await gateway.ask(`${tokens()}/${path}`, { method: "PUT", json });
    expect(status, text).to.equal(200);
  };

  /** Opens a stream of events, and resolves after its first event. */
  async function follow(headers: Record<string, string>) {
    const url = `${gateway.url}/v4/accounts/${gateway.accountId}/browser-rendering/crawl/${job}/events`;
    const response = await fetch(url, { headers });
    expect(response.status).to.equal(200);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) throw new Error("no body");
    let text = "";
    const readUntil = async (wanted: string) => {
      while (!text.includes(wanted)) {
        const { done, value } = await reader.read();
        if (done) return false;
        text += value;
      }
      return true;
    };
    expect(await readUntil("event: status")).to.equal(true);
    return { readUntil };
  }
  const withToken = (value: string) => follow({ Authorization: `Bearer ${value}` });

  /** Finishes the job. A stream checks its credential before it shows that. */
  const finish = () => {
    Object.assign(gateway.crawls.jobs.get(job)?.summary ?? {}, { status: "completed" });
    const counts = { total: 3, finished: 0, skipped: 0, pages: [] };
    gateway.crawls.live.show("crawl-job", job, { status: "completed", ...counts });
  };

  const changes: Record<string, (id: string) => Promise<unknown>> = {
    "its secret is replaced": (id) => put(`${id}/value`, {}),
    "it is disabled": (id) => put(id, { ...whole, status: "disabled" }),
    "it loses the permission of the route": (id) =>
      put(id, { ...whole, policies: policiesFor("apps.read") }),
    "an earlier expiry is set and passes": async (id) => {
      await put(id, { ...whole, expires_on: new Date(START + HOUR_MS).toISOString() });
      gateway.clock.now += HOUR_MS;
    },
    "it is deleted": (id) => gateway.ask(`${tokens()}/${id}`, { method: "DELETE" }),
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`ends the stream of an API token when ${name}, and no stream of another token`, async () => {
      const { id, value } = await newToken();
      const [changed, other] = [await withToken(value), await withToken(gateway.token)];
      await change(id);
      finish();
      expect(await changed.readUntil("event: finished")).to.equal(false);
      expect(await other.readUntil("event: finished")).to.equal(true);
    });
  }

  it("keeps the stream of a token that got a new name and more permissions", async () => {
    const { id, value } = await newToken();
    const stream = await withToken(value);
    await put(id, { name: "other", policies: policiesFor("browser-rendering.write") });
    finish();
    expect(await stream.readUntil("event: finished")).to.equal(true);
  });

  it("ends the stream of a person whose roles no longer open the route", async () => {
    const { accountId, actors } = gateway;
    const person = { userId: randomBytes(16).toString("hex"), email: "ada@example.com" };
    const { id, secretHash } = newInvitation(accountId);
    const by = { permissions: ALL_PERMISSIONS };
    const invited = { id, secretHash, email: person.email, roles: ["Member" as const], by };
    await actors.call(account, accountId, "invite", invited);
    await actors.call(account, accountId, "acceptInvitation", { id, secretHash, ...person });
    const cookie = newSessionText();
    const address = sessionAddress(cookie);
    const opened = { secretHash: address.secretHash, ...person };
    await actors.call(session, address.id, "open", opened);
    const stream = await follow({ Cookie: `tl_session=${cookie}`, "X-Trunkline-Session": "use" });
    const roles = ["OAuth Client Write" as const];
    await actors.call(account, accountId, "setRoles", { id: person.userId, roles, by });
    finish();
    expect(await stream.readUntil("event: finished")).to.equal(false);
  });
});
