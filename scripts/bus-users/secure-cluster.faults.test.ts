/**
 * Starts three servers with the secure configuration from deploy/, and roles that trust the certificates of these
 * servers.
 */
import { chmod, copyFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { runCommand } from "../testing/command-line.ts";
import { startCluster, startNats, type TestNatsCluster } from "../testing/nats-server.ts";
import { RoleProcess } from "../testing/role-process.ts";
import { TestAuthority } from "../testing/self-signed-certificate.ts";
import { until } from "../testing/until.ts";
import { REPOSITORY } from "../tools.ts";
import { outsideAccess } from "./outside-access.ts";
import { seedFile } from "./seeds.ts";

const TRUNKLINE = join(REPOSITORY, "scripts/trunkline.ts");
const ROLES = ["gateway", "actors", "browser"] as const;

describe("a bus with TLS and a user for each role", function () {
  this.timeout(300_000);
  let folder: string;
  let cluster: TestNatsCluster;
  /** The log of its servers. */
  const lines: string[] = [];
  const authority = new TestAuthority();
  const path = (name: string) => join(folder, name);
  const urls = () => cluster.servers.map(({ port }) => `nats://localhost:${port}`).join(",");
  const settings = (role: string): NodeJS.ProcessEnv => ({
    TRUNKLINE_NATS_URL: urls(),
    TRUNKLINE_NATS_CA: path("ca.pem"),
    TRUNKLINE_NATS_NKEYS: path(`${role}.nk`),
    TRUNKLINE_REPLICAS: "3",
    TRUNKLINE_ROLES: role,
  });
  const doctor = async (environment: NodeJS.ProcessEnv) =>
    await runCommand(process.execPath, [TRUNKLINE, "admin", "doctor", "bus", "certificates"], {
      TRUNKLINE_DATA: folder,
      ...environment,
    });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-secure-"));
    await chmod(folder, 0o755);
    await writeFile(path("ca.pem"), authority.cert);
    await certify("server", authority.issue("localhost"));
    const made = await runCommand(process.execPath, [
      TRUNKLINE,
      "admin",
      "bus-credentials",
      folder,
    ]);
    expect(made.code, made.stderr).to.equal(0);
    // Copies the servers' files into their own folder, as an operator does.
    for (const name of ["nats-secure.conf", "nats-base.conf"]) {
      await copyFile(join(REPOSITORY, "deploy", name), path(name));
    }
    cluster = await startCluster(3, "", (line) => lines.push(line), {
      config: path("nats-secure.conf"),
      environment: {
        TRUNKLINE_NATS_CERT: path("server.pem"),
        TRUNKLINE_NATS_CERT_KEY: path("server.key"),
        TRUNKLINE_NATS_CA: path("ca.pem"),
      },
    });
  });
  after(async () => {
    await cluster.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  async function certify(name: string, { cert, key }: { cert: string; key: string }) {
    await writeFile(path(`${name}.pem`), cert);
    await writeFile(path(`${name}.key`), key);
  }

  it("routes encrypt, and the three roles serve a token and a PDF", async () => {
    await using processes = new AsyncDisposableStack();
    const started = await Promise.all(
      ROLES.map((role) => RoleProcess.start(role, folder, settings(role))),
    );
    for (const one of started) processes.use(one);
    await Promise.all(started.map((one) => one.ready()));
    const [gateway] = started;
    const { account_id: account, api_token: token } = await (gateway?.credentials() ?? fail());
    const response = await fetch(`${gateway?.url}/v4/accounts/${account}/browser-rendering/pdf`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ html: "<p>secure" }),
    });
    expect((await response.bytes()).subarray(0, 5)).to.deep.equal(Buffer.from("%PDF-"));
    const { code, stdout } = await doctor(settings("gateway"));
    expect(code, stdout).to.equal(0);
    expect(stdout).to.match(/good +permissions of gateway/);
    for (const name of ["TRUNKLINE_NATS_CA", "certificate of the bus at localhost"]) {
      expect(stdout).to.include(name);
    }
  });

  it("a server without a certificate of the authority joins no cluster", async () => {
    const stranger = new TestAuthority();
    const { cert, key } = stranger.issue("localhost");
    await certify("stranger", { cert, key });
    const [peer = ""] = cluster.routes;
    await using _other = await startNats({
      config: `cluster { name: trunkline, listen: "127.0.0.1:-1", routes: ["${peer.replace("nats://", "nats://route:wrong@")}"]
        tls { cert_file: "${path("stranger.pem")}", key_file: "${path("stranger.key")}", ca_file: "${path("ca.pem")}", verify: true } }`,
    });
    await until("the route is refused", () =>
      lines.some((line) => line.includes("TLS route handshake error")),
    );
  });

  const start = async (environment: NodeJS.ProcessEnv) => {
    await using one = await RoleProcess.start("refused", folder, environment);
    return { code: await one.exit(), lines: one.lines };
  };
  /** Expects that the start fails with a one-line error, and that `admin doctor` reports the same error. */
  async function expectRefused(environment: NodeJS.ProcessEnv, text: RegExp): Promise<void> {
    const { code, lines } = await start(environment);
    expect(code).to.equal(1);
    expect(lines, lines.join("\n")).to.have.lengthOf(1);
    expect(lines[0]).to.match(text);
    const found = await doctor(environment);
    expect(found.code, found.stdout).to.equal(2);
    expect(found.stdout).to.match(text);
  }

  it("another authority than that of the servers ends a start with one line", async () => {
    await writeFile(path("other-ca.pem"), new TestAuthority("Other").cert);
    const environment = { ...settings("actors"), TRUNKLINE_NATS_CA: path("other-ca.pem") };
    await expectRefused(
      environment,
      /the server's certificate is not trusted \(\w+\): expected TRUNKLINE_NATS_CA to hold the authority/,
    );
    const { TRUNKLINE_NATS_CA: _, ...without } = settings("actors");
    await expectRefused(without, /the server's certificate is not trusted/);
  });

  it("a process without a seed ends with one line", async () => {
    const { TRUNKLINE_NATS_NKEYS: _, ...without } = settings("actors");
    await expectRefused(without, /the servers refuse this user: expected .*TRUNKLINE_NATS_NKEYS/);
  });

  it("the user admin is good for the doctor", async () => {
    const { TRUNKLINE_ROLES: _, ...admin } = settings("admin");
    const { code, stdout } = await doctor(admin);
    expect(code, stdout).to.equal(0);
    expect(stdout).to.match(
      /good +permissions of admin +found all that gateway, actors, browser use/,
    );
  });

  it("a certificate that has expired ends a start with one line", async () => {
    await certify("expired", authority.issue("localhost", "240101000000Z"));
    await using server = await startNats({
      config: `tls { cert_file: "${path("expired.pem")}", key_file: "${path("expired.key")}" }`,
    });
    const url = server.url.replace("127.0.0.1", "localhost");
    const { TRUNKLINE_NATS_NKEYS: _, ...environment } = settings("actors");
    await expectRefused(
      { ...environment, TRUNKLINE_NATS_URL: url, TRUNKLINE_REPLICAS: "1" },
      /the server's certificate has expired/,
    );
  });

  it("a certificate for another name ends a start with one line", async () => {
    const url = urls().replaceAll("localhost", "127.0.0.1");
    await expectRefused(
      { ...settings("actors"), TRUNKLINE_NATS_URL: url },
      /certificate is for other names than TRUNKLINE_NATS_URL has/,
    );
  });

  it("a server without TLS is refused where an authority is set", async () => {
    await using server = await startNats();
    const { TRUNKLINE_NATS_NKEYS: _, ...environment } = settings("actors");
    await expectRefused(
      { ...environment, TRUNKLINE_NATS_URL: server.url, TRUNKLINE_REPLICAS: "1" },
      /the server has no TLS, which the settings ask for/,
    );
  });

  it("a client certificate is shown to servers that ask for one", async () => {
    await certify("client", authority.issue("actors"));
    await using server = await startNats({
      config: `tls { cert_file: "${path("server.pem")}", key_file: "${path("server.key")}", ca_file: "${path("ca.pem")}", verify: true }`,
    });
    const url = server.url.replace("127.0.0.1", "localhost");
    const connect = async (tls: { caFile: string; certFile?: string; keyFile?: string }) => {
      const access = await outsideAccess(
        { natsCredsFile: undefined, natsNkeys: undefined, natsTls: tls },
        url,
        ["actors"],
      );
      const bus = await Bus.connect({ ...access("actors"), name: "test" });
      await bus.close();
    };
    const caFile = path("ca.pem");
    await connect({ caFile, certFile: path("client.pem"), keyFile: path("client.key") });
    const refused = await connect({ caFile }).catch((error: Error) => error.message);
    expect(refused).to.match(/^Cannot connect to the bus at /);
  });

  it("files that cannot be used are named by their settings, in one line", async () => {
    await writeFile(path("empty.pem"), "nothing");
    const cases: [NodeJS.ProcessEnv, RegExp][] = [
      [
        { TRUNKLINE_NATS_CA: path("none.pem") },
        /^TRUNKLINE_NATS_CA: expected the path of a file of certificates in PEM, found ".*none\.pem"$/,
      ],
      [
        { TRUNKLINE_NATS_CA: path("empty.pem") },
        /^TRUNKLINE_NATS_CA: expected a file of certificates in PEM, found ".*empty\.pem"$/,
      ],
      [
        { TRUNKLINE_NATS_NKEYS: path("none.nk") },
        /^TRUNKLINE_NATS_NKEYS: Cannot read the NKey seed ".*none\.nk": ENOENT$/,
      ],
      [
        { TRUNKLINE_NATS_NKEYS: path("empty.pem") },
        /^TRUNKLINE_NATS_NKEYS: Cannot read the NKey seed ".*empty\.pem": expected a line that begins with SU$/,
      ],
    ];
    for (const [wrong, text] of cases) {
      const { code, lines } = await start({ ...settings("actors"), ...wrong });
      expect(code).to.equal(1);
      expect(lines, lines.join("\n")).to.have.lengthOf(1);
      expect(lines[0]).to.match(text);
    }
  });

  it("a user of another role lacks the rights of the role, and the doctor names the user", async () => {
    await cp(seedFile(folder, "browser"), path("copied"));
    const { code, stdout } = await doctor({
      ...settings("actors"),
      TRUNKLINE_NATS_NKEYS: path("copied"),
    });
    expect(code, stdout).to.equal(2);
    expect(stdout).to.match(
      /failure +permissions of actors +found the user may not .*publish \$KV\.state-0\.doctor/,
    );
  });
});

function fail(): never {
  throw new Error("There is no gateway");
}
