import { copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "../scripts/testing/command-line.ts";
import { natsCliOrSkip } from "../scripts/testing/nats-cli.ts";
import { startNats, type TestNatsServer } from "../scripts/testing/nats-server.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { REPOSITORY } from "../scripts/tools.ts";

describe("backup and restore", function () {
  this.timeout(240_000);
  let cli: string;
  let folder: string;

  before(async function () {
    cli = await natsCliOrSkip(this);
    folder = await mkdtemp(join(tmpdir(), "trunkline-backup-"));
  });
  after(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("restores accounts and tokens by the commands of docs/operate/backup.md", async () => {
    const page = await readFile(join(REPOSITORY, "docs/operate/backup.md"), "utf8");
    const [backup = "", restore = ""] = page.match(/^nats account .*$/gm) ?? [];
    await using first = await startNats();
    await using second = await startNats();
    const made = await tokenOf(first);
    await nats(backup, first);
    await nats(restore, second);
    await mkdir(join(folder, "after"));
    await copyFile(join(folder, "before/credentials.json"), join(folder, "after/credentials.json"));
    await using after = await start("after", second);
    const { base_url } = await after.credentials();
    expect(await verify(base_url, made)).to.deep.equal({ status: 200, text: "active" });
    expect((await verify(base_url, `${made.slice(0, -1)}_`)).status).to.equal(401);
    after.signal("SIGTERM");
    expect(await after.exit()).to.equal(0);
  });

  const start = async (name: string, { url }: TestNatsServer) => {
    const environment = { TRUNKLINE_NATS_URL: url, TRUNKLINE_ROLES: "gateway,actors" };
    const instance = await RoleProcess.start(name, folder, environment);
    await instance.ready();
    return instance;
  };

  /** Makes a token that no credentials file has, and stops. */
  async function tokenOf(server: TestNatsServer): Promise<string> {
    await using instance = await start("before", server);
    const made = await makeToken(await instance.credentials());
    instance.signal("SIGTERM");
    expect(await instance.exit()).to.equal(0);
    return made;
  }

  async function nats(command: string, { url }: TestNatsServer): Promise<void> {
    const line = `nats() { '${cli}' "$@"; }; cd '${folder}' && ${command}`;
    const { code, stderr } = await runCommand("sh", ["-c", line], { NATS_URL: url });
    expect(code, `${command}: ${stderr}`).to.equal(0);
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
