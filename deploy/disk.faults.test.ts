/**
 * Fills the disk of a whole instance. Stored data stays readable, clients get the reason why writes are refused, and
 * the instance recovers when space is free again.
 */
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { SHUTDOWN_SECONDS } from "../schemas/limits.ts";
import { freePort } from "../scripts/free-port.ts";
import { NATS_STOP_MS_MAX } from "../scripts/nats-server.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { until } from "../scripts/testing/until.ts";

const run = promisify(execFile);
const MB = 1024 ** 2;
/** Limit of each wait for a state of the instance, on a busy machine too. */
const WAIT_MS_MAX = 120_000;
/** What an instance may need to exit beyond its shutdown time: its nats-server ends too, on a busy machine slowly. */
const EXIT_MS_MAX = NATS_STOP_MS_MAX + 5_000;

describe("a full disk", function () {
  this.timeout(600_000);
  let folder: string;
  let volume: string;
  let instance: RoleProcess;
  let port: number;
  let credentials: Credentials;

  before(async function () {
    folder = await mkdtemp(join(tmpdir(), "trunkline-disk-"));
    await chmod(folder, 0o755);
    volume = join(folder, "volume");
    await mkdir(volume);
    // Only root may mount a small disk. Without it, the test is skipped.
    if (!mount("1500m")) return this.skip();
    await start();
    credentials = await instance.credentials();
  });
  after(async () => {
    instance?.signal("SIGTERM");
    await instance?.exit();
    unmount();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("refuses writes and names the disk; reads and deletes work, and writes recover without a restart", async () => {
    await makeRepo("first");
    const remote = await makeRepo("second");
    await push("first", 3 * MB);
    await push("second", 5 * MB);
    // Deletes the cache of packs: it may be lost at any time, and reads then need disk space to fill it again.
    await rm(join(volume, "git/packs"), { recursive: true });
    await rm(join(volume, "git/repos"), { recursive: true });
    await fill();

    const namesDisk = async () => {
      const answer = await ask("/healthz", {}, "");
      return answer.status === 503 && /disk of TRUNKLINE_DATA/.test(answer.text) && answer;
    };
    const health = await until("it names the disk", namesDisk, WAIT_MS_MAX);
    expect(health.text).to.match(/\d+ MB left, \d+ MB needed/);
    const left = Number(/^trunkline_disk_free_bytes (\d+)$/m.exec(await instance.metrics())?.[1]);
    expect(left).to.be.below(96 * MB);
    const isRefused = async () => {
      const answer = await ask("/artifacts/namespaces/default/repos", post({ name: "third" }));
      return answer.status === 507 && answer;
    };
    const refused = await until("writes are refused", isRefused, WAIT_MS_MAX);
    expect(refused.text).to.include("the disk of this instance is full");
    const pushed = await push("second", MB).catch((error) => String(error.stderr));
    expect(pushed).to.include("507");

    const isRead = async () => {
      const { status } = await ask("/artifacts/namespaces/default/repos/first/log");
      return status === 200;
    };
    await until("what is not cached is read", isRead, WAIT_MS_MAX);
    await run("git", ["clone", "-q", remote, join(folder, "clone")], { env: gitEnv("second") });
    const deleted = await ask("/artifacts/namespaces/default/repos/first", { method: "DELETE" });
    expect(deleted.status, deleted.text).to.be.within(200, 299);

    await rm(join(volume, "filler"));
    const startedAt = performance.now();
    await until(
      "it is well",
      async () => (await ask("/healthz", {}, "")).status === 200,
      WAIT_MS_MAX,
    );
    await makeRepo("fourth");
    await push("second", MB);
    console.log(`      well again after ${Math.round(performance.now() - startedAt)} ms`);
  });

  it("SIGTERM ends the platform within the shutdown time", async () => {
    await fill();
    const namesDisk = async () => (await ask("/healthz", {}, "")).status === 503;
    await until("it names the disk", namesDisk, WAIT_MS_MAX);
    const startedAt = performance.now();
    instance.signal("SIGTERM");
    expect(await instance.exit()).to.not.equal(null);
    const took = performance.now() - startedAt;
    console.log(`      ended after ${Math.round(took)} ms`);
    expect(took).to.be.below(SHUTDOWN_SECONDS * 1_000 + EXIT_MS_MAX);
  });

  it("starts on the full disk, and serves the stored data", async () => {
    instance = await create();
    await until(
      "it answers",
      async () => {
        const { status } = await ask("/artifacts/namespaces/default/repos/second/log").catch(
          () => ({
            status: 0,
          }),
        );
        return status === 200;
      },
      WAIT_MS_MAX,
    );
    instance.signal("SIGTERM");
    await instance.exit();
  });

  it("a too small volume ends the start with one line that names the minimum", async () => {
    unmount();
    for (const size of ["24m", "600m"]) {
      expect(mount(size)).to.equal(true);
      await using program = await create();
      expect(await program.exit()).to.equal(1);
      expect(program.lines).to.have.length(1);
      expect(program.lines[0]).to.match(
        /^TRUNKLINE_DATA: expected a folder on a volume with at least 1465 MB free, found \d+ MB at /,
      );
      unmount();
    }
  });

  function mount(size: string): boolean {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", volume], {
        stdio: "ignore",
      });
      return true;
    } catch {
      return false;
    }
  }

  function unmount(): void {
    try {
      execFileSync("umount", [volume], { stdio: "ignore" });
    } catch {
      // The volume is not mounted.
    }
  }

  async function create(): Promise<RoleProcess> {
    port = await freePort();
    const temporary = join(folder, "tmp");
    await mkdir(temporary, { recursive: true });
    return new RoleProcess(volume, temporary, port, { TRUNKLINE_ROLES: "gateway,actors" });
  }

  async function start(): Promise<void> {
    instance = await create();
    await instance.ready();
  }

  /** Fills all remaining bytes of the disk, as another program on the same disk could. */
  async function fill(): Promise<void> {
    await using file = await open(join(volume, "filler"), "a");
    const piece = Buffer.alloc(MB);
    for (const bytes of [piece, piece.subarray(0, 4_096)]) {
      for (;;) {
        try {
          await file.write(bytes);
        } catch {
          break; // No space left on device.
        }
      }
    }
  }

  async function ask(
    path: string,
    options: RequestInit = {},
    prefix = `/v4/accounts/${credentials.account_id}`,
  ) {
    const headers = {
      Authorization: `Bearer ${credentials.api_token}`,
      "Content-Type": "application/json",
    };
    const response = await fetch(`http://127.0.0.1:${port}${prefix}${path}`, {
      headers,
      ...options,
    });
    return { status: response.status, text: await response.text() };
  }

  const post = (json: unknown): RequestInit => ({ method: "POST", body: JSON.stringify(json) });
  const tokens = new Map<string, string>();

  /** Creates a repository and returns the URL of its remote. */
  async function makeRepo(name: string): Promise<string> {
    const { status, text } = await ask("/artifacts/namespaces/default/repos", post({ name }));
    expect(status, text).to.equal(201);
    const { result } = JSON.parse(text) as { result: { token: string; remote: string } };
    tokens.set(name, result.token);
    const checkout = join(folder, name);
    await run("git", ["init", "-q", "-b", "main", checkout]);
    await run("git", ["-C", checkout, "remote", "add", "origin", result.remote]);
    return result.remote;
  }

  async function push(name: string, bytes: number): Promise<void> {
    const checkout = join(folder, name);
    await writeFile(join(checkout, randomBytes(4).toString("hex")), randomBytes(bytes));
    await run("git", ["-C", checkout, "add", "."]);
    const author = ["-c", "user.name=Me", "-c", "user.email=me@example.com"];
    await run("git", ["-C", checkout, ...author, "commit", "-q", "-m", "More"]);
    await run("git", ["-C", checkout, "push", "-q", "origin", "main"], { env: gitEnv(name) });
  }

  const gitEnv = (name: string) => ({
    ...process.env,
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "http.extraHeader",
    GIT_CONFIG_VALUE_0: `Authorization: Bearer ${tokens.get(name)}`,
  });
});
