import { expect } from "chai";
import { type AppConfig, AppConfig as Config } from "../../../schemas/apps/app-config.ts";
import { APP_SECRETS_MAX, APP_VERSIONS_MAX } from "../../../schemas/apps/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { APP_PURGE_LOST_MS, APP_PURGE_RETRY_MS, appActor } from "./app.ts";
import type { AppRow, AppState } from "./app-state.ts";

const ACCOUNT = "a".repeat(32);
const KEY = `${ACCOUNT}.hooks`;

describe("app", () => {
  it("stage() makes versions that do not serve yet; activate() makes the checked one serve", () => {
    const app = new App();
    expect(app.stage()).to.equal(1);
    expect(refusal(() => app.run("getServing", {})).code).to.equal("not_found");
    expect(app.run("getVersion", { version: 1 }).bundle).to.equal("app.bundle.1");
    const shown = app.run("activate", { version: 1 });
    expect(shown).to.deep.include({ name: "hooks", serving: 1 });
    expect(shown.versions.map(({ status }) => status)).to.deep.equal(["ready"]);
    expect(app.live).to.deep.equal({ revision: 1 });
    expect(app.sent).to.deep.equal(["app-list changed"]);
    expect(app.run("getServing", {})).to.deep.include({ version: 1, revision: 1 });
  });

  it("activate() twice, or late, leaves the one that serves", () => {
    const app = new App();
    app.stage();
    app.stage();
    app.run("activate", { version: 2 });
    expect(app.run("activate", { version: 2 }).serving).to.equal(2);
    expect(app.run("activate", { version: 1 }).serving).to.equal(2);
    expect(app.state.revision).to.equal(1);
  });

  it("reject() keeps the reason and the serving version; a broken version never serves", () => {
    const app = new App();
    app.deploy();
    app.stage();
    app.run("reject", { version: 2, reason: "SyntaxError" });
    expect(app.sent).to.deep.equal(["app-purge removeBundle"]);
    app.run("reject", { version: 2, reason: "again" });
    expect(app.sent).to.deep.equal([]);
    app.run("reject", { version: 1, reason: "too late" });
    const { versions, serving } = app.run("get", {});
    expect(serving).to.equal(1);
    expect(versions[0]).to.deep.include({ number: 2, status: "broken", reason: "SyntaxError" });
    expect(versions[1]?.status).to.equal("ready");
    for (const message of ["activate", "rollBack"] as const) {
      expect(refusal(() => app.run(message, { version: 2 })).code, message).to.equal("conflict");
    }
  });

  it("rollBack() goes to the one before, or the one named, and back again", () => {
    const app = new App();
    for (let version = 1; version <= 3; version++) app.deploy();
    expect(app.run("rollBack", {}).serving).to.equal(2);
    expect(app.run("rollBack", { version: 3 }).serving).to.equal(3);
    const { revision } = app.state;
    expect(app.run("rollBack", { version: 3 }).serving).to.equal(3);
    expect(app.state.revision).to.equal(revision);
    app.run("rollBack", { version: 1 });
    expect(refusal(() => app.run("rollBack", {})).code).to.equal("conflict");
    expect(refusal(() => app.run("rollBack", { version: 9 })).code).to.equal("not_found");
  });

  it("stage() keeps APP_VERSIONS_MAX versions and the one that serves, and removes bundles of the others", () => {
    const app = new App();
    app.deploy();
    for (let version = 2; version <= APP_VERSIONS_MAX; version++) app.stage();
    expect(app.run("get", {}).versions).to.have.lengthOf(APP_VERSIONS_MAX);
    app.stage();
    expect(app.sent).to.deep.equal(["app-purge removeBundle"]);
    const { versions } = app.run("get", {});
    expect(versions).to.have.lengthOf(APP_VERSIONS_MAX);
    expect(versions.map(({ number }) => number))
      .to.include(1)
      .and.not.include(2);
    expect(refusal(() => app.run("getVersion", { version: 2 })).code).to.equal("not_found");
  });

  it("stage() refuses the configuration of another app", () => {
    const refused = refusal(() => new App().stage({ name: "other" }));
    expect(refused.code).to.equal("invalid_request");
    expect(refused.message).to.include('"other"');
  });

  it("putSecret() keeps as many as the limit, and each change is one of the revision", () => {
    const app = new App();
    app.deploy();
    const put = (name: string) => app.run("putSecret", { name, sealed: "v1.x.y" });
    for (let index = 0; index < APP_SECRETS_MAX; index++) put(`S${index}`);
    expect(refusal(() => put("MORE")).code).to.equal("limit_reached");
    put("S0");
    expect(app.state.revision).to.equal(APP_SECRETS_MAX + 2);
    expect(app.run("get", {}).secrets).to.have.lengthOf(APP_SECRETS_MAX);
    expect(JSON.stringify(app.run("get", {}))).to.not.include("v1.x.y");
    app.run("deleteSecret", { name: "S0" });
    expect(refusal(() => app.run("deleteSecret", { name: "S0" })).code).to.equal("not_found");
    expect(app.run("getServing", {}).secrets).to.have.lengthOf(APP_SECRETS_MAX - 1);
  });

  it("resealSecret() changes the stored form of a secret, and nothing that its app sees", () => {
    const app = new App();
    app.deploy();
    app.run("putSecret", { name: "TOKEN", sealed: "v1.old.y" });
    const before = app.run("get", {});
    const { revision } = app.state;
    app.run("resealSecret", { name: "TOKEN", from: "v1.old.y", to: "v1.new.y" });
    expect(app.run("getServing", {}).secrets[0]?.sealed).to.equal("v1.new.y");
    expect(app.run("get", {})).to.deep.equal(before);
    expect(app.state.revision).to.equal(revision);
  });

  it("resealSecret() refuses if the secret was set or deleted meanwhile", () => {
    const app = new App();
    app.run("putSecret", { name: "TOKEN", sealed: "v1.set.y" });
    const again = { name: "TOKEN", from: "v1.old.y", to: "v1.new.y" };
    expect(refusal(() => app.run("resealSecret", again)).code).to.equal("conflict");
    const other = { ...again, name: "OTHER" };
    expect(refusal(() => app.run("resealSecret", other)).code).to.equal("conflict");
  });

  it("putSecret() may come before the first version", () => {
    const app = new App();
    app.run("putSecret", { name: "TOKEN", sealed: "v1.x.y" });
    expect(app.run("get", {})).to.deep.include({ name: "hooks", versions: [] });
    app.run("delete", {});
    const refused = refusal(() => app.run("putSecret", { name: "TOKEN", sealed: "v1.x.y" }));
    expect(refused.code).to.equal("conflict");
  });

  it("the first message of an app adds it to the list, and later ones do not", () => {
    const app = new App();
    app.stage();
    expect(app.sent).to.deep.equal(["app-list changed"]);
    app.stage();
    expect(app.sent).to.deep.equal([]);
    const other = new App();
    other.run("putSecret", { name: "TOKEN", sealed: "v1.x.y" });
    expect(other.sent).to.deep.equal(["app-list changed"]);
    other.stage();
    expect(other.sent).to.deep.equal([]);
  });

  it("delete() keeps the name until everything is gone, and asks again without an answer", () => {
    const app = new App();
    app.deploy();
    const { id = "" } = app.state;
    expect(app.run("getDeleting", {})).to.deep.equal({});
    expect(app.run("getId", {})).to.deep.equal({ id });
    app.now = 1_000;
    app.run("delete", {});
    expect(app.sent).to.deep.equal(["app-purge purge"]);
    expect(app.inputs).to.deep.equal([{ app: KEY, id }]);
    expect(app.remind).to.deep.equal({ purgeAgain: 1_000 + APP_PURGE_LOST_MS });
    expect(app.run("getDeleting", {})).to.deep.equal({ id });
    expect(app.run("getId", {})).to.deep.equal({});
    expect(refusal(() => app.run("get", {})).code).to.equal("not_found");
    expect(refusal(() => app.stage()).code).to.equal("conflict");
    app.run("purgeAgain", {});
    expect(app.inputs).to.deep.equal([{ app: KEY, id }]);
    expect(app.remind).to.deep.equal({ purgeAgain: 1_000 + APP_PURGE_LOST_MS });
    app.run("purged", { id });
    expect(app.sent).to.deep.equal(["app-list removed", "app-ports released"]);
    app.run("purged", { id });
    app.run("purgeFailed", { id });
    expect(app.remind).to.deep.equal({});
    app.run("purgeAgain", {});
    expect(app.sent).to.deep.equal([]);
    expect(app.stage()).to.equal(1);
    app.run("purged", { id });
    expect(app.run("get", {}).versions).to.have.lengthOf(1);
  });

  it("purged() with the id of an earlier app frees no name; without an id, the deletion is repeated", () => {
    const app = new App();
    app.deploy();
    app.run("delete", {});
    const other = "f".repeat(32);
    for (const message of ["purged", "purgeFailed"] as const) {
      app.run(message, { id: other });
      expect(app.state.status, message).to.equal("deleting");
      expect(app.remind, message).to.deep.equal({});
      // Workers of earlier versions send no id.
      app.run(message, {});
      expect(app.state.status, message).to.equal("deleting");
      expect(app.remind, message).to.deep.equal({ purgeAgain: APP_PURGE_RETRY_MS });
    }
    app.run("purgeFailed", { id: app.state.id });
    expect(app.remind).to.deep.equal({ purgeAgain: APP_PURGE_RETRY_MS });
  });
});

/** Handles messages of one app, one after the other. */
class App {
  state: AppState = appActor.initial;
  now = 0;
  live: unknown;
  sent: string[] = [];
  inputs: unknown[] = [];
  remind: Readonly<Record<string, unknown>> = {};
  readonly #rows = new Map<string, AppRow>();
  #bundles = 0;

  run<N extends keyof typeof appActor.handlers & string>(
    message: N,
    input: Parameters<(typeof appActor.handlers)[N]>[1],
  ) {
    const handled = runHandler(appActor, message, this.state, input as never, {
      key: KEY,
      now: this.now,
      rows: this.#rows,
    });
    this.state = handled.state as AppState;
    if (handled.forgotten) this.#rows.clear();
    for (const [name, row] of Object.entries(handled.rows)) {
      if (row === null) this.#rows.delete(name);
      else this.#rows.set(name, row as AppRow);
    }
    this.live = handled.live;
    this.remind = handled.remind;
    this.sent = handled.send.map(({ kind, message: sent }) => `${kind} ${sent}`);
    this.inputs = handled.send.map((sent) => sent.input);
    return handled.reply;
  }

  stage(config: Partial<AppConfig> = {}): number {
    const bundle = `app.bundle.${++this.#bundles}`;
    const whole = Config.parse({ name: "hooks", compatibility_date: "2026-11-20", ...config });
    return this.run("stage", { config: whole, bundle, bundleBytes: 10 }).version;
  }

  deploy(): void {
    this.run("activate", { version: this.stage() });
  }
}
