import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "../scripts/testing/command-line.ts";
import { shellBlocksOf } from "../scripts/testing/guide.ts";
import { startNats } from "../scripts/testing/nats-server.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { REPOSITORY } from "../scripts/tools.ts";

const PAGE = join(REPOSITORY, "docs/operate/backup.md");
const ON_PAGE = "/var/backups/trunkline";

describe("docs/operate/backup.md", function () {
  this.timeout(240_000);
  let folder: string;
  let commands: string[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-backup-"));
    commands = (await readFile(PAGE, "utf8")).match(/^trunkline admin .*$/gm) ?? [];
  });
  after(() => rm(folder, { recursive: true, maxRetries: 10 }));

  it("its commands back up a running platform, and restore it into a data folder", async () => {
    await using first = await startNats();
    await using before = await start("before", first.url);
    const credentials = await before.credentials();
    const kept = await makeToken(credentials);
    const backup = theCommand(/ admin backup \S+ --keep \d+$/);
    const verifies = theCommand(/ admin backup \S+ --verify$/);
    const restore = theCommand(/ admin restore \S+$/);
    await page(theCommand(/ admin backup \S+$/), { TRUNKLINE_NATS_URL: first.url });
    await page(backup, { TRUNKLINE_NATS_URL: first.url });
    // It needs no bus: this address has none.
    await page(verifies, { TRUNKLINE_NATS_URL: "nats://127.0.0.1:1" });
    const later = await makeToken(credentials);
    await page(restore, { TRUNKLINE_DATA: join(folder, "single") });
    await using after = await start("single", undefined);
    // The restored platform already has accounts, so it creates no first account and no credentials file.
    const error = await after.credentials().catch((cause: unknown) => cause);
    expect(error).to.have.property("code", "ENOENT");
    const api = `${after.url}/v4`;
    expect(await verify(api, kept)).to.deep.equal({ status: 200, text: "active" });
    expect((await verify(api, later)).status).to.equal(401);
    after.signal("SIGTERM");
    expect(await after.exit()).to.equal(0);
    // The instance has stopped, so the command finds no bus.
    const away = await page(backup, { TRUNKLINE_DATA: join(folder, "single") }, 1);
    expect(away).to.match(/^Cannot connect to the bus at /);
  });

  it("its restore for the systemd unit runs in the unit's folder, and the lines after it in that of the operator", async () => {
    const blocks = shellBlocksOf("docs/operate/backup.md");
    const lines = blocks.find((block) => block.includes("runuser ")) ?? "";
    // These programs need root, so each one only prints where it was started.
    const programs = ["install", "chown", "runuser", "cp", "systemctl"];
    const stubs = programs.map((name) => `${name}() { echo ${name} "$(pwd -P)"; }`).join("\n");
    const home = await realpath(await mkdtemp(join(folder, "home-")));
    const text = `cd /\n${stubs}\n${lines.replace("cd /var/lib/trunkline", `cd '${home}'`)}`;
    const { stdout, stderr } = await runCommand("sh", ["-e", "-c", text]);
    expect(stdout.trim().split("\n"), stderr).to.deep.equal([
      ...["install /", "chown /", `runuser ${home}`],
      ...["install /", "cp /", "systemctl /"],
    ]);
  });

  /** Returns the only command of the page that matches. */
  function theCommand(pattern: RegExp): string {
    const found = commands.filter((command) => pattern.test(command));
    expect(found, String(pattern)).to.have.length(1);
    return found[0] ?? "";
  }

  const start = async (name: string, url: string | undefined) => {
    const environment = {
      TRUNKLINE_ROLES: "gateway,actors",
      ...(url !== undefined && { TRUNKLINE_NATS_URL: url }),
    };
    const instance = await RoleProcess.start(name, folder, environment);
    await instance.ready();
    return instance;
  };

  /**
   * Runs a command of the documentation page with the test's folder for the backups. Returns the command's stderr.
   */
  async function page(command: string, environment: NodeJS.ProcessEnv, expected = 0) {
    const program = `trunkline() { '${process.execPath}' '${REPOSITORY}/scripts/trunkline.ts' "$@"; }`;
    const line = `${program}; ${command.replace(ON_PAGE, join(folder, "backups"))}`;
    const { code, stderr } = await runCommand("sh", ["-c", line], environment);
    expect(code, `${command}: ${stderr}`).to.equal(expected);
    return stderr;
  }
});

async function makeToken({ base_url, account_id, api_token }: Credentials): Promise<string> {
  const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
  const response = await fetch(`${base_url}/accounts/${account_id}/tokens`, {
    method: "POST",
    headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ name: "made before", policies }),
  });
  return ((await response.json()) as { result: { value: string } }).result.value;
}

async function verify(baseUrl: string, token: string) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(`${baseUrl}/user/tokens/verify`, { headers });
  const { result } = (await response.json()) as { result: { status: string } | null };
  return { status: response.status, text: result?.status };
}
