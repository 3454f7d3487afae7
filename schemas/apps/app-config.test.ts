import { expect } from "chai";
import { NewAppConfig } from "./app-config.ts";
import {
  APP_AGENT_CLASSES_MAX,
  APP_EVENT_RULES_MAX,
  APP_SECRETS_MAX,
  APP_VAR_BYTES_MAX,
  APP_VARS_MAX,
  APP_WEBHOOKS_MAX,
} from "./limits.ts";

const agents = [{ binding: "Repo", class_name: "RepoAgent" }];
const webhook = {
  ...{ path: "/in", provider: "github", secret: "HOOK" },
  entity: { header: "x-entity" },
};

describe("app-config", () => {
  const faults = (config: object) => {
    const whole = { name: "hooks", compatibility_date: "2026-11-20", ...config };
    const { error } = NewAppConfig.safeParse(whole);
    return (error?.issues ?? []).map(({ path, message }) => `/${path.join("/")}: ${message}`);
  };

  it("events may name bound agents only", () => {
    expect(faults({ agents, webhooks: [{ ...webhook, agent: "Repo" }] })).to.deep.equal([]);
    expect(faults({ agents, webhooks: [{ ...webhook, agent: "Repos" }] })).to.deep.equal([
      '/webhooks/0/agent: Expected one of Repo, not "Repos"',
    ]);
    const events = [{ source: "artifacts", types: ["pushed"], agent: "Repo" }];
    expect(faults({ agents, events })).to.deep.equal([]);
    expect(faults({ events })).to.deep.equal([
      '/events/0/agent: Expected a binding of agents, not "Repo"',
    ]);
  });

  it("each name in env may occur once", () => {
    const said = (path: string, name: string) =>
      `${path}: Expected a name that env does not have yet, not "${name}"`;
    expect(faults({ agents, vars: { Repo: 1 } })).to.deep.equal([
      said("/agents/0/binding", "Repo"),
    ]);
    expect(faults({ agents: [...agents, ...agents] })).to.deep.equal([
      said("/agents/1/binding", "Repo"),
    ]);
    expect(faults({ agents, browser: { binding: "Repo" } })).to.deep.equal([
      said("/browser/binding", "Repo"),
    ]);
    const secrets = { required: ["GIT"] };
    const artifacts = [{ binding: "GIT", namespace: "default" }];
    expect(faults({ secrets, artifacts })).to.deep.equal([said("/artifacts/0/binding", "GIT")]);
  });

  it("accepts values up to its limits and refuses one more", () => {
    const named = (count: number, of: (name: string) => unknown) =>
      Array.from({ length: count }, (_, index) => of(`N${index}`));
    const vars = (count: number) => ({
      vars: Object.fromEntries(named(count, (name) => [name, 1]) as [string, number][]),
    });
    const size = (bytes: number) => ({ vars: { LONG: "x".repeat(bytes - 2) } });
    const classes = (count: number) => ({
      agents: named(count, (name) => ({ binding: name, class_name: name })),
    });
    const hooks = (count: number) => ({
      agents,
      webhooks: named(count, (name) => ({ ...webhook, path: `/${name}`, agent: "Repo" })),
    });
    const rules = (count: number) => ({
      agents,
      events: named(count, () => ({ source: "artifacts", types: ["pushed"], agent: "Repo" })),
    });
    const secrets = (count: number) => ({
      secrets: { required: named(count, (name) => name) },
    });
    for (const [fill, most] of [
      [vars, APP_VARS_MAX],
      [size, APP_VAR_BYTES_MAX],
      [classes, APP_AGENT_CLASSES_MAX],
      [hooks, APP_WEBHOOKS_MAX],
      [rules, APP_EVENT_RULES_MAX],
      [secrets, APP_SECRETS_MAX],
    ] as const) {
      expect(faults(fill(most)), fill.name).to.deep.equal([]);
      expect(faults(fill(most + 1)), fill.name).to.have.length(1);
    }
  });
});
