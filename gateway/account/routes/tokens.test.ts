import { expect } from "chai";
import { TOKEN_USED_EVERY_MS } from "../../../schemas/account/limits.ts";
import { ALL_PERMISSIONS, PERMISSIONS } from "../../../schemas/account/permissions.ts";
import {
  FAULT_CHARS_MAX,
  JSON_BODY_BYTES_MAX,
  TOKENS_PER_ACCOUNT_MAX,
} from "../../../schemas/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  giveToken,
  openAccount,
  START,
  type TestGateway,
  testGateway,
} from "../../testing/test-gateway.ts";

const group = { id: "apps.read" };
const accountWriter = {
  policies: [{ effect: "allow", permission_groups: [{ id: "account.write" }, group] }],
};
const wanted = { name: "ci", policies: [{ effect: "allow", permission_groups: [group] }] };

describe("routes of tokens", () => {
  let gateway: TestGateway;
  let tokens: string;
  beforeEach(async () => {
    gateway = await testGateway();
    tokens = `/v4/accounts/${gateway.accountId}/tokens`;
  });
  afterEach(() => gateway.stop());

  const create = (json: unknown, token?: string) =>
    gateway.ask(tokens, { method: "POST", json, ...(token === undefined ? {} : { token }) });

  it("createToken() makes a token with the given permissions, and shows it once", async () => {
    const { status, json } = await create(wanted);
    expect(status).to.equal(200);
    const { value, ...shown } = json?.result ?? {};
    expect(value).to.match(/^tl_[0-9a-f]{32}_[\w-]{43}$/);
    expect(shown).to.deep.equal({
      id: value.slice(3, 35),
      name: "ci",
      status: "active",
      last_four: value.slice(-4),
      issued_on: new Date(START).toISOString(),
      policies: [
        {
          effect: "allow",
          permission_groups: [{ id: "apps.read", name: "Apps Read" }],
          resources: { [`account.${gateway.accountId}`]: "*" },
        },
      ],
    });
    const listed = await gateway.ask(tokens);
    expect(listed.json?.result.at(-1)).to.deep.equal(shown);
    const got = await gateway.ask(`${tokens}/${shown.id}`);
    expect(got.json?.result).to.deep.equal(shown);
    expect(listed.text + got.text).not.to.contain(value);
    const verified = await gateway.ask("/v4/user/tokens/verify", { token: value });
    expect(verified.json?.result).to.deep.equal({ id: shown.id, status: "active" });
    // The token lacks account.read.
    expect((await gateway.ask(tokens, { token: value })).status).to.equal(403);
  });

  it("a token shows its last use to within TOKEN_USED_EVERY_MS, also after its secret was replaced", async () => {
    const { id, value } = (await create(wanted)).json?.result ?? {};
    const use = (token: string) => gateway.ask("/v4/user/tokens/verify", { token });
    const lastUse = async () => (await gateway.ask(`${tokens}/${id}`)).json?.result.last_used_on;
    const shows = (at: number) =>
      until("the use is shown", async () => (await lastUse()) === new Date(at).toISOString());
    expect(await lastUse()).to.equal(undefined);
    await use(value);
    await shows(START);
    gateway.clock.now += TOKEN_USED_EVERY_MS - 1;
    expect((await use(value)).status).to.equal(200);
    const rolled = await gateway.ask(`${tokens}/${id}/value`, { method: "PUT" });
    expect(await lastUse()).to.equal(new Date(START).toISOString());
    gateway.clock.now += 1;
    await use(rolled.json?.result);
    await shows(START + TOKEN_USED_EVERY_MS);
    // A token that is refused is not used.
    gateway.clock.now += TOKEN_USED_EVERY_MS;
    expect((await use(value)).status).to.equal(401);
    await use(gateway.token);
    const own = `${tokens}/${gateway.token.slice(3, 35)}`;
    await until("the later use of another token is shown", async () => {
      const { json } = await gateway.ask(own);
      return json?.result.last_used_on === new Date(gateway.clock.now).toISOString();
    });
    expect(await lastUse()).to.equal(new Date(START + TOKEN_USED_EVERY_MS).toISOString());
  });

  it("createToken() accepts groups as listed, times, and resources with a prefix", async () => {
    const { json } = await create({
      name: "ci",
      not_before: "2026-11-20T13:00:00+01:00",
      expires_on: "2026-11-20T13:00:00Z",
      policies: [
        {
          effect: "allow",
          permission_groups: [{ id: "apps.read", name: "Apps Read" }],
          resources: { [`com.example.api.account.${gateway.accountId}`]: "*" },
        },
      ],
    });
    const { value, not_before, expires_on } = json?.result ?? {};
    expect(not_before).to.equal("2026-11-20T12:00:00.000Z");
    expect(expires_on).to.equal("2026-11-20T13:00:00.000Z");
    const verify = () => gateway.ask("/v4/user/tokens/verify", { token: value });
    expect((await verify()).json?.result).to.include({ not_before, expires_on });
    gateway.clock.now += 3_600_000;
    expect((await verify()).status).to.equal(401);
    const listed = await gateway.ask(`${tokens}?direction=desc`);
    expect(listed.json?.result[0]).to.include({ status: "expired" });
  });

  it("createToken() refuses each fault with its pointer and what would be valid", async () => {
    const faults: [unknown, string, RegExp][] = [
      [{ ...wanted, name: "" }, "/name", /a text of 1 to 120 characters$/],
      [{ ...wanted, name: "n".repeat(121) }, "/name", /120/],
      [{ ...wanted, name: 5 }, "/name", /a text of 1 to 120 characters$/],
      [{ ...wanted, name: "half \ud83d" }, "/name", /well-formed Unicode/],
      [{ ...wanted, not_before: "1969-12-31T23:59:59Z" }, "/not_before", /1970/],
      [{ policies: wanted.policies }, "/name", /Missing/],
      [{ ...wanted, policies: [] }, "/policies", /an array of 1 to \d+ items/],
      [{ ...wanted, condition: {} }, "/condition", /Unknown field.*name, policies/],
      [policy({ effect: "deny" }), "/policies/0/effect", /allow/],
      [
        policy({ permission_groups: [] }),
        "/policies/0/permission_groups",
        /an array of 1 to \d+ items/,
      ],
      [
        policy({ permission_groups: [{ id: "everything" }] }),
        "/policies/0/permission_groups/0/id",
        /apps\.read/,
      ],
      [policy({ resources: { "account.other": "*" } }), "/policies/0/resources", /account\./],
      [{ ...wanted, expires_on: "tomorrow" }, "/expires_on", /as in "2030-/],
      [{ ...wanted, expires_on: new Date(START).toISOString() }, "/expires_on", /is past/],
      [policy({ resources: "*" }), "/policies/0/resources", /as in \{"account/],
      [
        { ...wanted, not_before: "2026-11-20T12:00:00Z", expires_on: "2026-11-20T12:00:00Z" },
        "/expires_on",
        /after not_before/,
      ],
      [[], "", /object/],
      [null, "", /object/],
      [{ ...wanted, "a/b~c": 1 }, "/a~1b~0c", /Unknown field/],
    ];
    for (const [json, pointer, message] of faults) {
      const answer = await create(json);
      expect(answer.status, pointer).to.equal(400);
      const [error, ...others] = answer.json?.errors ?? [];
      expect(others).to.deep.equal([]);
      expect(error?.source).to.deep.equal({ pointer });
      expect(error?.message).to.match(message);
      expect(error?.code).to.equal(1001);
    }
  });

  it("createToken() names every fault at once", async () => {
    const { json } = await create({ name: 1, policies: "all", extra: 1, other: 2 });
    const pointers = json?.errors.map(({ source }) => source?.pointer);
    expect(pointers).to.have.members(["/name", "/policies", "/extra", "/other"]);
  });

  it("createToken() grants no permission that the caller lacks", async () => {
    const token = await gateway.tokenWith("account.write", "browser-rendering.write");
    const refused = await create(wanted, token);
    expect(refused.status).to.equal(403);
    expect(refused.json?.errors[0]?.message).to.contain("Apps Read");
    // To write includes to read.
    const groups = { permission_groups: [{ id: "browser-rendering.read" }] };
    expect((await create(policy(groups), token)).status).to.equal(200);
  });

  it("createToken() accepts the last token of the limit and refuses one more", async () => {
    for (let i = 1; i < TOKENS_PER_ACCOUNT_MAX; i++) {
      await giveToken(gateway.actors, gateway.accountId, ["apps.read"]);
    }
    const { status, json } = await create(wanted);
    expect(status).to.equal(409);
    expect(json?.errors[0]?.code).to.equal(1007);
  });

  it("createToken() reads a body of the limit and refuses one byte more", async () => {
    const sized = (bytes: number) => {
      const text = JSON.stringify(wanted);
      return text + " ".repeat(bytes - text.length);
    };
    const headers = { "Content-Type": "application/json" };
    const ask = (body: string) => gateway.ask(tokens, { method: "POST", body, headers });
    expect((await ask(sized(JSON_BODY_BYTES_MAX))).status).to.equal(200);
    const refused = await ask(sized(JSON_BODY_BYTES_MAX + 1));
    expect(refused.status).to.equal(413);
    expect(refused.json?.errors[0]?.message).to.contain(String(JSON_BODY_BYTES_MAX));
  });

  it("listTokens() answers in pages, in both directions", async () => {
    for (let i = 0; i < 24; i++) await create({ ...wanted, name: `t${i}` });
    const first = await gateway.ask(tokens);
    expect(first.json?.result_info).to.deep.equal({
      page: 1,
      per_page: 20,
      count: 20,
      total_count: 25,
      total_pages: 2,
    });
    const last = await gateway.ask(`${tokens}?page=3&per_page=10`);
    expect(last.json?.result.map(({ name }: { name: string }) => name)).to.deep.equal([
      "t19",
      "t20",
      "t21",
      "t22",
      "t23",
    ]);
    const newest = await gateway.ask(`${tokens}?per_page=1&direction=desc`);
    expect(newest.json?.result[0].name).to.equal("t23");
    expect((await gateway.ask(`${tokens}?page=4&per_page=10`)).json?.result).to.deep.equal([]);
  });

  it("listTokens() refuses an invalid page", async () => {
    for (const [query, pointer] of [
      ["page=0", "/query/page"],
      ["page=x", "/query/page"],
      ["page=1&page=2", "/query/page"],
      ["per_page=101", "/query/per_page"],
      ["per_page=1.5", "/query/per_page"],
      ["direction=up", "/query/direction"],
    ]) {
      const { status, json } = await gateway.ask(`${tokens}?${query}`);
      expect(status, query).to.equal(400);
      expect(json?.errors[0]?.message).not.to.contain("NaN");
      expect(json?.errors[0]?.source?.pointer).to.equal(pointer);
    }
    expect((await gateway.ask(`${tokens}?per_page=100`)).status).to.equal(200);
  });

  it("listTokens() names the invalid number", async () => {
    for (const [query, message] of [
      ["page=abc", 'Expected a number, not "abc"'],
      ["per_page=1.5", 'Expected a whole number from 1 to 100, not "1.5"'],
      ["per_page=101", 'Expected a whole number from 1 to 100, not "101"'],
    ]) {
      const { json } = await gateway.ask(`${tokens}?${query}`);
      expect(json?.errors[0]?.message).to.contain(message);
    }
  });

  it("listTokens() repeats an invalid value up to the limit", async () => {
    const sentBack = async (chars: number) =>
      (await gateway.ask(`${tokens}?page=${"a".repeat(chars)}`)).json?.errors[0]?.message;
    // With its two quotes.
    const longest = FAULT_CHARS_MAX - 2;
    expect(await sentBack(longest)).to.match(/not "a{254}"$/);
    expect(await sentBack(longest + 1)).to.match(/not "a{255}…$/);
  });

  it("a token cannot delete, change or roll a token with more permissions", async () => {
    const writer = await gateway.tokenWith("account.write", "apps.read");
    const [stronger, weaker] = [
      await gateway.tokenWith("account.write", "apps.write"),
      await gateway.tokenWith("apps.read"),
    ].map((text) => text.slice(3, 35));
    const policies = [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }];
    const calls = [
      ["PUT", "", { name: "x", policies }],
      ["PUT", "/value", undefined],
      ["DELETE", "", undefined],
    ] as const;
    for (const [method, path, json] of calls) {
      const send = (id: string | undefined) =>
        gateway.ask(`${tokens}/${id}${path}`, { method, token: writer, json });
      const refused = await send(stronger);
      expect([method, refused.status]).to.deep.equal([method, 403]);
      expect(refused.json?.errors[0]?.message).to.contain('own token lacks "Apps Write"');
      expect((await send(weaker)).status, method).to.equal(200);
    }
    expect((await gateway.ask(`${tokens}/${stronger}`)).status).to.equal(200);
    const more = [{ effect: "allow", permission_groups: [{ id: "apps.write" }] }];
    const own = `${tokens}/${writer.slice(3, 35)}`;
    const raised = await gateway.ask(own, {
      method: "PUT",
      token: writer,
      json: { name: "x", policies: more },
    });
    expect(raised.status).to.equal(403);
  });

  it("a token makes, changes and rolls none that is valid longer than itself", async () => {
    const expiresAt = START + 3_600_000;
    const { actors, accountId } = gateway;
    const short = await giveToken(actors, accountId, ["account.write", "apps.read"], { expiresAt });
    const id = short.slice(3, 35);
    const until = (ms: number) => ({ ...wanted, expires_on: new Date(ms).toISOString() });
    for (const [method, path] of [
      ["POST", tokens],
      ["PUT", `${tokens}/${id}`],
    ] as const) {
      for (const json of [wanted, until(expiresAt + 1_000)]) {
        const { status, json: answer } = await gateway.ask(path, { method, token: short, json });
        expect([method, status]).to.deep.equal([method, 400]);
        const [fault] = answer?.errors ?? [];
        expect(fault?.source?.pointer).to.equal("/expires_on");
        expect(fault?.message).to.contain(new Date(expiresAt).toISOString());
      }
    }
    expect((await create(until(expiresAt), short)).status).to.equal(200);
    const lasting = (await gateway.tokenWith("apps.read")).slice(3, 35);
    const roll = { method: "PUT", token: short };
    expect((await gateway.ask(`${tokens}/${lasting}/value`, roll)).status).to.equal(403);
    // Another token's end that stays as it is needs no permission.
    const renamed = { ...roll, json: { ...wanted, name: "renamed" } };
    expect((await gateway.ask(`${tokens}/${lasting}`, renamed)).status).to.equal(200);
    const sooner = { ...roll, json: { ...until(expiresAt - 1_000), ...accountWriter } };
    expect((await gateway.ask(`${tokens}/${id}`, sooner)).status).to.equal(200);
    expect((await gateway.ask(`${tokens}/${id}/value`, roll)).status).to.equal(200);
  });

  it("listPermissionGroups() pages, filters, and ignores parameters that it does not know", async () => {
    const names = async (query: string) => {
      const { json } = await gateway.ask(`${tokens}/permission_groups?${query}`);
      return json?.result.map(({ name }: { name: string }) => name);
    };
    expect(await names("colour=red")).to.have.length(10);
    expect(await names("page=2")).to.deep.equal([]);
    expect(await names("name=Apps+Read")).to.deep.equal(["Apps Read"]);
    expect(await names("name=Apps")).to.deep.equal([]);
    expect(await names("scope=com.cloudflare.api.account")).to.have.length(10);
    expect(await names("scope=com.cloudflare.api.user")).to.deep.equal([]);
  });

  it("listPermissionGroups() lists all groups", async () => {
    const { json } = await gateway.ask(`${tokens}/permission_groups`);
    expect(json?.result).to.deep.equal(
      ALL_PERMISSIONS.map((id) => ({ id, name: PERMISSIONS[id] })),
    );
  });

  it("deleteToken() revokes at once, and answers unknown the second time", async () => {
    const { id, value } = (await create(wanted)).json?.result ?? {};
    const deleted = await gateway.ask(`${tokens}/${id}`, { method: "DELETE" });
    expect(deleted.json?.result).to.deep.equal({ id });
    expect((await gateway.ask("/v4/user/tokens/verify", { token: value })).status).to.equal(401);
    expect((await gateway.ask(`${tokens}/${id}`, { method: "DELETE" })).status).to.equal(404);
    expect((await gateway.ask(`${tokens}/${id}`)).status).to.equal(404);
  });

  it("deleteToken() does not touch another account's token", async () => {
    const other = await openAccount(gateway.actors, "Two");
    const token = await giveToken(gateway.actors, other, ["account.write"]);
    const id = token.slice(3, 35);
    expect((await gateway.ask(`${tokens}/${id}`, { method: "DELETE" })).status).to.equal(404);
    expect((await gateway.ask("/v4/user/tokens/verify", { token })).status).to.equal(200);
  });

  it("answers 400 to an invalid token id", async () => {
    const { status, json } = await gateway.ask(`${tokens}/nothing`);
    expect(status).to.equal(400);
    expect(json?.errors[0]?.source?.pointer).to.equal("/path/token_id");
  });

  it("reading needs account.read, writing account.write", async () => {
    const reader = await gateway.tokenWith("account.read");
    const writer = await gateway.tokenWith("account.write");
    const nobody = await gateway.tokenWith("apps.write");
    const id = gateway.token.slice(3, 35);
    for (const [path, method, needed] of [
      [tokens, "GET", "read"],
      [tokens, "POST", "write"],
      [`${tokens}/permission_groups`, "GET", "read"],
      [`${tokens}/${id}`, "GET", "read"],
      [`${tokens}/${id}`, "DELETE", "write"],
    ] as const) {
      const refused = await gateway.ask(path, { method, token: nobody });
      expect(refused.status).to.equal(403);
      expect(refused.json?.errors[0]?.message).to.contain(
        needed === "read" ? "Account Settings Read" : "Account Settings Write",
      );
      expect(refused.headers.get("www-authenticate")).to.contain("insufficient_scope");
      const asReader = await gateway.ask(path, { method, token: reader });
      expect(asReader.status === 403, `${method} ${path}`).to.equal(needed === "write");
      if (method === "GET") {
        expect((await gateway.ask(path, { token: writer })).status).to.equal(200);
      }
    }
  });

  function policy(changes: object) {
    return { ...wanted, policies: [{ ...wanted.policies[0], ...changes }] };
  }
});
