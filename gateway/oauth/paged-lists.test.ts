import { expect } from "chai";
import { user } from "../../schemas/account/user.ts";
import { grantList } from "../../schemas/oauth/grant-list.ts";
import { CLIENTS_PER_PAGE } from "../../schemas/oauth/limits.ts";
import { type OAuthWorld, oauthWorld, Person, type Wire } from "./testing/oauth-world.ts";

const id = (number: number) => number.toString(16).padStart(32, "0");

describe("lists whose pages come from alternating gateways", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let account: string;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    account = `/accounts/${world.accountId}`;
  });
  after(() => world?.stop());

  const sent = async (method: string, path: string, json: unknown, gateway: number) => {
    const { status, body } = await world.api(path, { method, json, gateway });
    expect(status, JSON.stringify(body)).to.equal(200);
    return body.result;
  };

  /** Reads all pages of a list, alternately from the two gateways. Runs `meanwhile` after each page. */
  async function byCursor(path: string, meanwhile = async (_page: number) => {}): Promise<Wire[]> {
    const found: Wire[] = [];
    let query: string | undefined = "";
    for (let page = 0; query !== undefined; page++) {
      const asked = await world.api(`${path}?limit=2${query}`, { gateway: page % 2 });
      expect(asked.status).to.equal(200);
      const { result, result_info } = asked.body;
      found.push(...result);
      expect([result_info.count, result.length <= 2]).to.deep.equal([result.length, true]);
      query = result_info.cursor && `&cursor=${result_info.cursor}`;
      await meanwhile(page);
    }
    return found;
  }

  it("list each client once, newest first, though clients are made and deleted between pages", async () => {
    const ids: string[] = [];
    while (ids.length < 7) ids.unshift((await world.makeClient()).client_id);
    const found = await byCursor(`${account}/oauth_clients`, async (page) => {
      if (page > 1) return;
      await world.makeClient({ client_name: "Late" });
      const gone = { method: "DELETE", gateway: page % 2 };
      // Deletes one client that a page has already listed and one that no page has listed yet.
      for (const index of [page * 2, 6 - page]) {
        await world.api(`${account}/oauth_clients/${ids[index]}`, gone);
      }
    });
    const shown = found.map(({ client_id }) => client_id);
    expect(shown).to.deep.equal(ids.slice(0, 5));
    // A change made at one gateway is visible at the other, in the list and in the single entry.
    const left = (await byCursor(`${account}/oauth_clients`)).map(({ client_id }) => client_id);
    expect(left.slice(2)).to.deep.equal(ids.filter((_id, index) => [1, 3, 4].includes(index)));
  });

  it("list each change of a client once, newest first, though the client changes between pages", async () => {
    const { client_id } = await world.makeClient();
    const path = `${account}/oauth_clients/${client_id}`;
    for (let number = 1; number <= 6; number++) {
      await sent("PATCH", path, { client_name: `Bot ${number}` }, number % 2);
    }
    const found = await byCursor(`${path}/audit_log`, async (page) => {
      if (page === 0) await sent("PATCH", path, { client_name: "Late" }, 1);
      // The change log of the client is still readable after the client was deleted.
      if (page === 1) await sent("DELETE", path, undefined, 0);
    });
    expect(found.map(({ number }) => number)).to.deep.equal([6, 5, 4, 3, 2, 1, 0]);
    expect(found.map(({ changes }) => changes[0].to).slice(0, 6)).to.deep.equal(
      [6, 5, 4, 3, 2, 1].map((number) => `"Bot ${number}"`),
    );
    const [deleted, late] = await byCursor(`${path}/audit_log`);
    expect([deleted.action, late.changes[0].to]).to.deep.equal(["deleted", '"Late"']);
  });

  it("list each member and invitation once, in both orders", async () => {
    const emails = [world.owner.email];
    for (let number = 1; number <= 6; number++) {
      const email = `m${number}@example.com`;
      await sent("POST", `${account}/members`, { email, roles: ["Member"] }, number % 2);
      emails.push(email);
    }
    for (const [direction, expected] of [
      ["asc", emails],
      ["desc", emails.toReversed()],
    ] as const) {
      const found: string[] = [];
      let pages = 1;
      for (let page = 1; page <= pages; page++) {
        const query = `page=${page}&per_page=3&direction=${direction}`;
        const { body } = await world.api(`${account}/members?${query}`, { gateway: page % 2 });
        const { total_count, total_pages } = body.result_info;
        expect([total_count, total_pages]).to.deep.equal([7, 3]);
        pages = total_pages;
        found.push(...body.result.map(({ email }: Wire) => email));
      }
      expect(found, direction).to.deep.equal(expected);
    }
  });

  it("list each client that a person allowed once, though grants change between pages", async () => {
    const { actors } = world.bus;
    const { id: userId } = await actors.call(user, world.owner.email, "get", {});
    const consent = { scopes: ["apps.read" as const], rejectedScopes: [], accountIds: [] };
    const allow = (number: number) =>
      actors.call(grantList, userId, "consent", { ...consent, clientId: id(number) });
    const count = 2 * CLIENTS_PER_PAGE + 3;
    for (let number = 1; number <= count; number++) await allow(number);
    const person = new Person(world.urls[0] ?? "");
    await person.open("/login");
    await person.signIn(world.owner);
    const found: string[] = [];
    let next: string | undefined = "/profile/clients";
    for (let page = 0; next !== undefined; page++) {
      person.through = world.urls[page % 2];
      const { text, status } = await person.open(next);
      expect(status).to.equal(200);
      found.push(
        ...Array.from(
          text.matchAll(/name="client" value="([0-9a-f]{32})"/g),
          ([, one = ""]) => one,
        ),
      );
      next = /href="(\/profile\/clients\?after=[^"]+)"/.exec(text)?.[1];
      if (page > 0) continue;
      await allow(count + 1);
      // Revokes the last client of the page at the other gateway, with a form that the first gateway rendered.
      const client = found.at(-1) ?? "";
      person.through = world.urls[1];
      await person.submit({ client }, { action: "/profile/clients/revoke" });
      expect(person.seen.text).to.contain("Revoked.");
    }
    // Entries of the same time are sorted by name.
    const all = Array.from({ length: count }, (_, index) => id(index + 1));
    expect(found.toSorted()).to.deep.equal(all);
  });
});
