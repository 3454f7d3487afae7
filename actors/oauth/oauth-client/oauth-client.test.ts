import { expect } from "chai";
import {
  AUDIT_KEPT_MS,
  AUDIT_VALUE_CHARS_MAX,
  SECRET_USED_EVERY_MS,
} from "../../../schemas/oauth/limits.ts";
import { CLIENT_CHARS_MAX } from "../../../schemas/oauth/oauth-client-settings.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import {
  AUDIT_ENTRIES_MAX,
  CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX,
  CLIENT_CHANGES_OF_ALL_PER_DAY_MAX,
  CLIENT_CHANGES_PER_DAY_MAX,
} from "./change-log.ts";
import { OAuthClientState } from "./oauth-client-state.ts";
import {
  ACCOUNT,
  by,
  complete,
  DrivenClient,
  pace,
  secret,
  settings,
} from "./testing/driven-client.ts";

const OTHER = "b".repeat(32);

describe("oauth-client", () => {
  it("create() stores the client, and does not return the secret's hash", () => {
    const client = new DrivenClient();
    const reply = client.create(settings);
    const { now } = client;
    const { secrets, ...entry } = reply;
    expect(entry).to.deep.equal({
      ...{ ...settings, accountId: ACCOUNT, visibility: "private" },
      ...{ createdAt: now, updatedAt: now },
    });
    expect(secrets).to.have.length(1);
    expect(secrets[0])
      .to.include({ lastFour: "0001", createdAt: now })
      .and.not.to.have.property("hash");
    expect(client.sent).to.deep.equal([
      {
        ...{ to: "actor", kind: "oauth-client-list", key: ACCOUNT, message: "created" },
        input: { clientId: "c".repeat(32) },
      },
    ]);
    expect(client.due.size).to.equal(0);
    expect(client.get()).to.deep.equal(reply);
  });

  it("create() repeated changes nothing; with other content it is a conflict", () => {
    const client = DrivenClient.made();
    client.create(settings);
    expect(client.changed).to.equal(false);
    expect(refusal(() => client.create(settings, 2)).code).to.equal("conflict");
    client.run("remove", { accountId: ACCOUNT, by });
    expect(refusal(() => client.create(settings)).code).to.equal("conflict");
  });

  it("create() refuses each combination of fields that exclude each other", () => {
    const faultsOf = (change: Partial<typeof settings>) =>
      refusal(() => DrivenClient.made(change)).details.faults?.map(({ pointer }) => pointer);
    expect(faultsOf({ optionalScopes: ["apps.read", "artifacts.read"] })).to.deep.equal([
      "/optional_scopes/0",
    ]);
    const scopes = ["openid" as const, "offline_access" as const, "apps.read" as const];
    expect(faultsOf({ scopes, optionalScopes: scopes })).to.deep.equal([
      "/optional_scopes/0",
      "/optional_scopes/1",
    ]);
    const own = ["https://a.example/", "com.example.app:/callback"];
    expect(faultsOf({ redirectUris: own, postLogoutRedirectUris: own })).to.deep.equal([
      "/redirect_uris/1",
      "/post_logout_redirect_uris/1",
    ]);
    DrivenClient.made({ redirectUris: own, tokenEndpointAuthMethod: "none" });
  });

  it("create() refuses https on loopback together with a custom scheme, and accepts either alone", () => {
    const loopback = ["https://localhost:8443/cb", "https://127.0.0.1/cb", "https://[::1]"];
    DrivenClient.made({ redirectUris: loopback, tokenEndpointAuthMethod: "none" });
    DrivenClient.made({ redirectUris: loopback });
    const native = {
      redirectUris: ["com.example.app:/cb", "http://localhost/cb", "https://localhost.example/cb"],
      tokenEndpointAuthMethod: "none" as const,
    };
    const both = { ...native, postLogoutRedirectUris: loopback };
    const { details } = refusal(() => DrivenClient.made(both));
    expect(details.faults?.map(({ pointer }) => pointer)).to.deep.equal([
      "/post_logout_redirect_uris/0",
      "/post_logout_redirect_uris/1",
      "/post_logout_redirect_uris/2",
    ]);
    DrivenClient.made(native);
  });

  it("create() accepts CLIENT_CHARS_MAX characters in all and refuses one more", () => {
    const uri = (number: number, path: string) => `https://a.example/${number}${path}`;
    const long = Array.from({ length: 15 }, (_, number) => uri(number + 10, "x".repeat(2_000)));
    const made = { ...settings, redirectUris: [...long, uri(1, "")] };
    const room = CLIENT_CHARS_MAX - JSON.stringify(made).length;
    made.redirectUris[15] = uri(1, "x".repeat(room));
    DrivenClient.made(made);
    made.redirectUris[15] = uri(1, "x".repeat(room + 1));
    const { details } = refusal(() => DrivenClient.made(made));
    expect(details.faults?.[0]?.message).to.contain(String(CLIENT_CHARS_MAX));
  });

  it("another account's client and a deleted client are unknown", () => {
    const client = DrivenClient.made();
    const calls = (accountId: string) => [
      () => client.run("get", { accountId }),
      () => client.run("update", { accountId, by, patch: {}, pace }),
      () => client.run("addSecret", { accountId, by, secret: secret(2) }),
      () => client.run("removeOldSecret", { accountId, by }),
      () => client.run("remove", { accountId, by }),
    ];
    const log = (accountId: string) => () => client.run("listChanges", { accountId, count: 1 });
    for (const call of [...calls(OTHER), log(OTHER)]) {
      expect(refusal(call).code).to.equal("not_found");
    }
    client.run("remove", { accountId: ACCOUNT, by });
    const authorizing = () => client.run("getForAuthorization", {});
    for (const call of [...calls(ACCOUNT), ...calls(OTHER), log(OTHER), authorizing]) {
      expect(refusal(call).code).to.equal("not_found");
    }
    const none = new DrivenClient();
    expect(refusal(() => none.get()).code).to.equal("not_found");
    expect(refusal(() => none.changes()).code).to.equal("not_found");
    expect(refusal(() => none.run("getForAuthorization", {})).code).to.equal("not_found");
  });

  it("update() changes the sent fields, removes those that are null, and leaves the rest", () => {
    const client = DrivenClient.made({ policyUri: "https://a.example/policy" });
    client.now += 5;
    const reply = client.update({ clientName: "Other", policyUri: null, optionalScopes: [] });
    expect(reply).to.include({ clientName: "Other", updatedAt: client.now });
    expect(reply).to.not.have.property("policyUri");
    expect(reply.scopes).to.deep.equal(settings.scopes);
    expect(client.live).to.deep.equal({ change: "updated" });
    client.update({ clientName: "Other" });
    expect(client.changed).to.equal(false);
    client.update({});
    expect(client.changed).to.equal(false);
  });

  it("update() validates the whole client, not only the sent fields", () => {
    const client = DrivenClient.made();
    const faultOf = (patch: Parameters<typeof client.update>[0]) =>
      refusal(() => client.update(patch)).details.faults?.[0]?.pointer;
    expect(faultOf({ scopes: ["artifacts.read"] })).to.equal("/optional_scopes/0");
    expect(faultOf({ redirectUris: ["com.example.app:/x"] })).to.equal("/redirect_uris/0");
    client.update({ redirectUris: ["com.example.app:/x"], tokenEndpointAuthMethod: "none" });
    expect(faultOf({ tokenEndpointAuthMethod: "client_secret_post" })).to.equal("/redirect_uris/0");
    expect(client.state).to.deep.include({ secrets: [] });
  });

  it("update() to method none deletes the secrets; a new one must be made afterwards", () => {
    const client = DrivenClient.made();
    client.addSecret(2);
    client.update({ tokenEndpointAuthMethod: "none" });
    expect(client.get().secrets).to.deep.equal([]);
    expect(client.changes().map(({ action }) => action)).to.deep.equal([
      ...["secret_removed", "secret_removed", "updated", "secret_added", "created"],
    ]);
    client.update({ tokenEndpointAuthMethod: "client_secret_post" });
    client.addSecret(3);
    expect(client.get().secrets).to.have.length(1);
  });

  it("addSecret() replaces the newer of two secrets if it was never used", () => {
    const client = DrivenClient.made();
    client.addSecret(2);
    client.addSecret(3);
    expect(client.live).to.deep.equal({ change: "updated" });
    const both = client.run("getForAuthorization", {}).secrets;
    expect(both.map(({ hash }) => hash)).to.deep.equal([secret(1).hash, secret(3).hash]);
    const [added, removed] = client.changes();
    expect([removed?.action, removed?.changes[0]?.from]).to.deep.equal([
      "secret_removed",
      '"…0002"',
    ]);
    expect([added?.action, added?.changes[0]?.to]).to.deep.equal(["secret_added", '"…0003"']);
  });

  it("addSecret() keeps two, and refuses a third if the second is in use, until the old one is removed", () => {
    const client = DrivenClient.made();
    client.now += 5;
    client.addSecret(2);
    expect(client.live).to.deep.equal({ change: "updated" });
    client.run("secretUsed", { secretId: client.get().secrets[1]?.id ?? "" });
    expect(refusal(() => client.addSecret(3)).code).to.equal("conflict");
    const both = client.run("getForAuthorization", {}).secrets;
    expect(both.map(({ hash }) => hash)).to.deep.equal([secret(1).hash, secret(2).hash]);
    client.run("removeOldSecret", { accountId: ACCOUNT, by });
    expect(client.live).to.deep.equal({ change: "updated" });
    const one = client.run("getForAuthorization", {}).secrets;
    expect(one.map(({ hash }) => hash)).to.deep.equal([secret(2).hash]);
    const again = refusal(() => client.run("removeOldSecret", { accountId: ACCOUNT, by }));
    expect(again.code).to.equal("not_found");
    client.addSecret(3);
  });

  it("addSecret() refuses a client without secrets as invalid", () => {
    const client = DrivenClient.made({ tokenEndpointAuthMethod: "none" });
    expect(refusal(() => client.addSecret(2)).code).to.equal("invalid_request");
    const removing = () => client.run("removeOldSecret", { accountId: ACCOUNT, by });
    expect(refusal(removing).code).to.equal("not_found");
  });

  it("secretUsed() records the time to within SECRET_USED_EVERY_MS, and ignores unknown secrets", () => {
    const client = DrivenClient.made();
    const secretId = client.get().secrets[0]?.id ?? "";
    const lastUsedAt = () => client.get().secrets[0]?.lastUsedAt;
    const first = client.now;
    client.run("secretUsed", { secretId });
    expect(lastUsedAt()).to.equal(first);
    client.now += SECRET_USED_EVERY_MS - 1;
    client.run("secretUsed", { secretId });
    expect(client.changed).to.equal(false);
    client.now += 1;
    client.run("secretUsed", { secretId });
    expect(lastUsedAt()).to.equal(client.now);
    client.run("secretUsed", { secretId: "9".repeat(32) });
    expect(client.changed).to.equal(false);
    client.run("remove", { accountId: ACCOUNT, by });
    client.run("secretUsed", { secretId });
    expect(client.changed).to.equal(false);
  });

  it("remove() applies at once, notifies the list and the subscribers, and keeps the log for AUDIT_KEPT_MS", () => {
    const client = DrivenClient.made(complete);
    client.run("remove", { accountId: ACCOUNT, by });
    expect(client.live).to.deep.equal({ change: "removed" });
    expect(client.sent[0]).to.include({ kind: "oauth-client-list", message: "removed" });
    expect(JSON.stringify(client.state)).to.not.contain(secret(1).hash);
    expect([...client.due]).to.deep.equal([["forget", client.now + AUDIT_KEPT_MS]]);
    expect(client.changes()[0]).to.deep.include({ action: "deleted", by, at: client.now });
    client.run("domainChecked", { check: 1, outcome: "found", answer: "too late" });
    expect(client.changed).to.equal(false);
    client.run("checkDomain", {});
    expect(client.changed).to.equal(false);
    client.run("forget", {});
    expect(client.forgotten).to.equal(true);
  });

  it("forget() of an existing client changes nothing", () => {
    const client = DrivenClient.made();
    client.run("forget", {});
    expect(client.changed).to.equal(false);
  });

  it("notifies client-logo when the logo is set, set again or removed, and when the client is deleted", () => {
    const [first, second] = ["https://a.example/1.png", "https://a.example/2.png"];
    const client = DrivenClient.made({ logoUri: first });
    const handed = (act: () => unknown) => {
      client.sent = [];
      act();
      const to = client.sent.filter(({ kind }) => kind === "client-logo");
      return to.map(({ message, input }) => [message, (input as { uri: string | null }).uri]);
    };
    const update = (logoUri?: string | null) =>
      handed(() => client.update(logoUri === undefined ? { clientName: "Other" } : { logoUri }));
    const made = client.sent.filter(({ kind }) => kind === "client-logo");
    expect(made).to.have.length(1);
    expect(update(first)).to.deep.equal([["follow", first]]);
    expect(update()).to.deep.equal([]);
    expect(update(second)).to.deep.equal([["follow", second]]);
    expect(update(null)).to.deep.equal([["follow", null]]);
    const removed = handed(() => client.run("remove", { accountId: ACCOUNT, by }));
    expect(removed).to.deep.equal([["follow", null]]);
  });

  it("listChanges() lists person, time and fields of each change, without secrets", () => {
    const client = DrivenClient.made();
    client.now += 5;
    const user = { type: "user" as const, id: "8".repeat(32) };
    const patch = { clientName: "Other", logoUri: "https://a.example/logo.png" };
    client.run("update", { accountId: ACCOUNT, by: user, patch, pace });
    client.addSecret(2);
    const [added, updated, created] = client.changes();
    expect(updated).to.deep.equal({
      ...{ number: 1, at: client.now, by: user, action: "updated" },
      changes: [
        { field: "client_name", from: '"Build Bot"', to: '"Other"' },
        { field: "logo_uri", from: null, to: '"https://a.example/logo.png"' },
      ],
    });
    expect(created).to.deep.include({ number: 0, at: client.now - 5, by, action: "created" });
    const changes = [{ field: "secret", from: null, to: '"…0002"' }];
    expect(added).to.deep.include({ action: "secret_added", changes });
    expect(JSON.stringify(client.changes())).to.not.contain(secret(2).hash);
  });

  it("listChanges() shows a value of AUDIT_VALUE_CHARS_MAX whole and truncates a longer one", () => {
    const client = DrivenClient.made();
    const uri = (chars: number) => `https://a.example/${"x".repeat(chars - 20)}`;
    const shown = (chars: number) => {
      client.update({ tosUri: uri(chars) });
      return client.changes()[0]?.changes[0]?.to ?? "";
    };
    expect(shown(AUDIT_VALUE_CHARS_MAX)).to.equal(JSON.stringify(uri(AUDIT_VALUE_CHARS_MAX)));
    const cut = shown(AUDIT_VALUE_CHARS_MAX + 1);
    expect(cut).to.have.length(AUDIT_VALUE_CHARS_MAX).and.match(/x…$/);
  });

  it("listChanges() continues from its cursor, and refuses an invalid one", () => {
    const client = DrivenClient.made();
    for (let number = 1; number < 25; number++) client.update({ clientName: `Bot ${number}` });
    const page = (cursor?: string) =>
      client.run("listChanges", { accountId: ACCOUNT, count: 10, cursor });
    const first = page();
    const second = page(first.cursor);
    const third = page(second.cursor);
    expect(third.cursor).to.equal(undefined);
    const numbers = [first, second, third].flatMap(({ entries }) =>
      entries.map((one) => one.number),
    );
    expect(numbers).to.deep.equal(Array.from({ length: 25 }, (_, index) => 24 - index));
    for (const cursor of ["x", "-1", "1.5"]) {
      expect(refusal(() => page(cursor)).code).to.equal("invalid_request");
    }
  });

  it("the log keeps AUDIT_ENTRIES_MAX changes, and drops the oldest for one more", () => {
    const client = DrivenClient.made();
    for (let number = 1; number < AUDIT_ENTRIES_MAX; number++) {
      client.now += 86_400_000 / CLIENT_CHANGES_PER_DAY_MAX;
      client.update({ clientName: `Bot ${number}` });
    }
    expect(client.rows.size).to.equal(AUDIT_ENTRIES_MAX);
    expect(client.rows.has("change.0")).to.equal(true);
    client.update({ clientName: "One more" });
    expect(client.rows.size).to.equal(AUDIT_ENTRIES_MAX);
    expect(client.rows.has("change.0")).to.equal(false);
  });

  it("refuses updates and secrets past CLIENT_CHANGES_PER_DAY_MAX a day, but never a removal", () => {
    const client = DrivenClient.made(complete);
    // This update changes no field, but it verifies the domain again, so it counts towards the limit.
    client.update({ clientUri: complete.clientUri });
    client.addSecret(2);
    client.run("removeOldSecret", { accountId: ACCOUNT, by });
    for (let number = 4; number <= CLIENT_CHANGES_PER_DAY_MAX; number++) {
      client.update({ clientName: `Bot ${number}` });
    }
    client.now += 86_399_000;
    const { state } = client;
    const changes = [
      () => client.update({ clientName: "One more" }),
      () => client.update({ clientUri: complete.clientUri }),
      () => client.addSecret(3),
    ];
    for (const change of changes) {
      const { code, details } = refusal(change);
      expect([code, details.retryAfterS]).to.deep.equal(["rate_limited", 1]);
    }
    // An update that changes nothing causes no log entry, so it is allowed past the limit.
    client.update({ clientName: `Bot ${CLIENT_CHANGES_PER_DAY_MAX}` });
    client.now += 1_000;
    for (const change of changes) change();
    client.state = state;
    client.run("remove", { accountId: ACCOUNT, by });
  });

  it("leaves changes of the day to other authors, and after many authors to people who are signed in", () => {
    const client = DrivenClient.made();
    client.addSecret(2);
    const change = () =>
      client.update({
        clientName: `Bot ${client.state.life === "live" && client.state.nextChange}`,
      });
    const changeWhileAllowed = () => {
      for (let times = 0; ; times++) {
        try {
          change();
        } catch (error) {
          expect(error).to.include({ code: "rate_limited" });
          return times;
        }
      }
    };
    expect(changeWhileAllowed()).to.equal(CLIENT_CHANGES_PER_DAY_MAX - 2);
    client.removeOldSecret();
    const owner = { type: "user" as const, id: "8".repeat(32) };
    // The same person through a client of theirs is another author.
    client.by = { ...owner, clientId: "9".repeat(32) };
    const others = CLIENT_CHANGES_OF_ALL_PER_DAY_MAX - CLIENT_CHANGES_PER_DAY_MAX;
    expect(changeWhileAllowed()).to.equal(others);
    client.by = { type: "api_token", id: "6".repeat(32) };
    expect(changeWhileAllowed()).to.equal(0);
    client.by = owner;
    const left = CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX - CLIENT_CHANGES_OF_ALL_PER_DAY_MAX;
    expect(changeWhileAllowed()).to.equal(left);
    expect(OAuthClientState.parse(JSON.parse(JSON.stringify(client.state)))).to.deep.equal(
      client.state,
    );
    client.now += 86_400_000;
    expect(changeWhileAllowed()).to.equal(CLIENT_CHANGES_PER_DAY_MAX);
  });

  it("counts the removal of a secret with its addition, and never refuses it", () => {
    const client = DrivenClient.made();
    for (let number = 2; number < 2 + CLIENT_CHANGES_PER_DAY_MAX / 2; number++) {
      client.addSecret(number);
      client.removeOldSecret();
    }
    expect(refusal(() => client.addSecret(99)).code).to.equal("rate_limited");
    expect(client.rows.size).to.equal(1 + CLIENT_CHANGES_PER_DAY_MAX);
  });

  it("reads the count of a day that has no authors, as the first release stored it", () => {
    const client = DrivenClient.made();
    client.update({ clientName: "Other" });
    const { state } = client;
    if (state.life !== "live" || !state.lately) throw new Error("nothing was counted");
    const { authors: _, ...lately } = state.lately;
    client.state = OAuthClientState.parse({
      ...state,
      lately: { ...lately, entries: CLIENT_CHANGES_OF_ALL_PER_DAY_MAX - 1 },
    });
    client.update({ clientName: "Last" });
    expect(refusal(() => client.update({ clientName: "More" })).code).to.equal("rate_limited");
  });

  it("counts an update that names the logo among the changes of a day, even if it changes nothing", () => {
    const { logoUri = "" } = complete;
    const client = DrivenClient.made({ logoUri });
    for (let number = 1; number <= CLIENT_CHANGES_PER_DAY_MAX; number++) client.update({ logoUri });
    expect(client.changes()).to.have.length(1);
    for (const address of [logoUri, null]) {
      const { code } = refusal(() => client.update({ logoUri: address }));
      expect(code).to.equal("rate_limited");
    }
    client.now += 86_400_000;
    client.update({ logoUri });
    expect(client.sent.map(({ kind }) => kind)).to.deep.equal(["client-logo"]);
  });

  it("the stored state loads again", () => {
    for (const client of [DrivenClient.public(), DrivenClient.made(), new DrivenClient()]) {
      const text = JSON.stringify(client.state);
      expect(OAuthClientState.parse(JSON.parse(text))).to.deep.equal(client.state);
    }
  });
});
