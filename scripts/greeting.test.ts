import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { configFromEnvironment } from "./config.ts";
import { greeting } from "./greeting.ts";

describe("greeting", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-test-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("greeting() says where the API, its documentation, the credentials and the bus are", async () => {
    const credentials = join(folder, "credentials.json");
    await writeFile(credentials, "{}");
    const text = greetingOf({ TRUNKLINE_PUBLIC_URL: "https://a.example" });
    for (const line of [
      "Console      https://a.example/console",
      "Base URL     https://a.example/v4",
      "Docs         https://a.example/docs",
      `Credentials  ${credentials}`,
      `Bus          nats -s "$(cat '${join(folder, "nats.url")}')" …`,
      "A first PDF:",
      "A first crawl, followed to its end, and the pages it has found:",
      "A first repository, and a push to it from an empty folder:",
    ])
      expect(text.split("\n")).to.include(line);
  });

  it("greeting() says in words what the bus is good for, and keeps its password", () => {
    const text = greetingOf({ TRUNKLINE_NATS_URL: "nats://me:secret@a:4222" });
    expect(text).to.match(/Bus +nats:\/\/\S*a:4222\n +\(for operators: the nats CLI/);
    expect(text).to.not.include("secret");
    expect(text).to.not.include("Credentials");
  });

  it("greeting() names no pages of a process without a gateway", () => {
    const text = greetingOf({ TRUNKLINE_ROLES: "actors" });
    expect(text)
      .to.include("Trunkline runs: actors.")
      .and.not.match(/Base URL|Docs|PDF/);
  });

  const greetingOf = (environment: NodeJS.ProcessEnv) =>
    greeting(configFromEnvironment({ TRUNKLINE_DATA: folder, ...environment }));
});
