import { expect } from "chai";
import { ALL_PERMISSIONS, type Permission } from "../../schemas/account/permissions.ts";
import { AppConfig } from "../../schemas/apps/app-config.ts";
import { refusal } from "../../scripts/testing/refusal.ts";
import { checkMayBind } from "./binding-permissions.ts";

const configOf = (fields: object) =>
  AppConfig.parse({ name: "one", compatibility_date: "2026-11-20", ...fields });
const NAMESPACE = configOf({ artifacts: [{ binding: "GIT", namespace: "default" }] });
const BROWSER = configOf({ browser: { binding: "BROWSER" } });
const EVENTS = configOf({
  agents: [{ binding: "Repo", class_name: "Repo" }],
  events: [{ source: "artifacts", types: ["pushed"], agent: "Repo" }],
});

describe("checkMayBind()", () => {
  it("accepts an app without bindings from everybody, and every app from a caller with all permissions", () => {
    checkMayBind(["apps.write"], configOf({}));
    for (const config of [NAMESPACE, BROWSER, EVENTS]) checkMayBind(ALL_PERMISSIONS, config);
  });

  it("refuses what the deployer may not do, and names the permission", () => {
    const cases: [AppConfig, Permission[], string][] = [
      [NAMESPACE, ["artifacts.read", "browser-rendering.write"], "Artifacts Write"],
      [BROWSER, ["artifacts.write", "browser-rendering.read"], "Browser Rendering Write"],
      [EVENTS, ["browser-rendering.write"], "Artifacts Read"],
    ];
    for (const [config, held, lacking] of cases) {
      const refused = refusal(() => checkMayBind(["apps.write", ...held], config));
      expect(refused.code).to.equal("forbidden");
      expect(refused.message).to.contain(`"${lacking}"`);
    }
    checkMayBind(["artifacts.write"], NAMESPACE);
    checkMayBind(["browser-rendering.write"], BROWSER);
    checkMayBind(["artifacts.read"], EVENTS);
  });
});
