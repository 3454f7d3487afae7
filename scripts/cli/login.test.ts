import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { expect } from "chai";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
} from "../../gateway/oauth/testing/oauth-world.ts";
import { freePort } from "../free-port.ts";
import { AppFolder } from "../testing/app-folder.ts";
import type { ChildProgram } from "../testing/child-program.ts";

describe("trunkline login", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let folder: AppFolder;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());
  beforeEach(async () => {
    folder = await AppFolder.make();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  const url = () => world.urls[0] ?? "";
  const readLogin = async () => JSON.parse(await readFile(folder.loginPath, "utf8"));

  async function changeLogin(changes: object): Promise<void> {
    await writeFile(folder.loginPath, JSON.stringify({ ...(await readLogin()), ...changes }));
  }

  /** Opens the address that the command prints in the browser of a signed-in person. */
  async function openPage(command: ChildProgram): Promise<Person> {
    const address = await command.line("/oauth2/auth?");
    const person = new Person(url());
    await person.open(address);
    await person.signIn(world.owner);
    return person;
  }

  async function logIn(): Promise<void> {
    await using command = folder.start(["login", "--url", url(), "--no-browser"]);
    const person = await openPage(command);
    if (person.seen.url.startsWith(url())) await person.submit({ decision: "allow" });
    const page = await fetch(person.seen.url);
    expect(await page.text()).to.include("You are logged in");
    expect(await command.exit(), command.lines.join("\n")).to.equal(0);
  }

  it("stores the login that a person allows in their browser, readable only by them, and commands use it", async () => {
    await using command = folder.start(["login", "--url", `${url()}/v4/`, "--no-browser"]);
    const person = await openPage(command);
    expect(person.seen.text)
      .to.include("Trunkline command line")
      .and.include("Part of this platform");
    for (const scope of ["Apps Write", "Artifacts Write", "Account Settings Read"]) {
      expect(person.seen.text).to.include(scope);
    }
    await person.submit({ decision: "allow" });
    expect(new URL(person.seen.url)).to.include({ hostname: "127.0.0.1", pathname: "/callback" });
    const page = await fetch(person.seen.url);
    expect(page.headers.get("cache-control")).to.equal("no-store");
    expect(await page.text()).to.include("You can close this window");
    expect(await command.exit()).to.equal(0);
    expect(command.lines.at(-1)).to.equal(
      `Logged in at ${url()}/v4 as ${world.owner.email}, account Main (${world.accountId})`,
    );

    expect((await stat(folder.loginPath)).mode & 0o777).to.equal(0o600);
    expect((await stat(dirname(folder.loginPath))).mode & 0o777).to.equal(0o700);
    const seen = await folder.succeed(["whoami"]);
    expect(seen).to.include(world.accountId).and.include(world.owner.email);
  });

  it("reports that the person declined", async () => {
    await using command = folder.start(["login", "--url", url(), "--no-browser"]);
    const { person } = await newPerson(world);
    await person.open(await command.line("/oauth2/auth?"));
    await person.submit({ decision: "deny" });
    expect(await (await fetch(person.seen.url)).text()).to.include("You are not logged in");
    expect(await command.exit()).to.equal(1);
    expect(command.lines.at(-1)).to.equal("Cannot log in: you did not allow it");
  });

  it("refuses a code with another state or from another server", async () => {
    await using command = folder.start(["login", "--url", url(), "--no-browser"]);
    const asked = new URL(await command.line("/oauth2/auth?")).searchParams;
    expect(asked.get("code_challenge_method")).to.equal("S256");
    const callback = asked.get("redirect_uri") ?? "";
    const state = asked.get("state") ?? "";
    const answers = [
      { code: "stolen", state: "other", iss: url() },
      { code: "stolen", state },
      { code: "stolen", state, iss: "http://other.example" },
    ];
    for (const answer of answers) {
      const { status } = await fetch(`${callback}?${new URLSearchParams(answer)}`);
      expect(status).to.equal(400);
    }
    expect((await fetch(new URL("/", callback))).status).to.equal(404);
    command.signal("SIGTERM");
    expect(await command.exit()).to.equal(null);
  });

  it("refreshes once for commands that run at the same time, and the login goes on", async () => {
    await logIn();
    await using counting = await countingProxy(url());
    await changeLogin({
      token_endpoint: `${counting.url}/oauth2/token`,
      expires_at: new Date(0).toISOString(),
    });
    const before = await readLogin();
    const ends = await Promise.all(Array.from({ length: 4 }, () => folder.run(["whoami"])));
    expect(ends.map(({ code, stderr }) => ({ code, stderr }))).to.deep.equal(
      ends.map(() => ({ code: 0, stderr: "" })),
    );
    expect(counting.asked).to.deep.equal(["/oauth2/token"]);
    const between = await readLogin();
    expect(between.refresh_token).to.not.equal(before.refresh_token);
    expect((await stat(folder.loginPath)).mode & 0o777).to.equal(0o600);

    await changeLogin({ expires_at: new Date(0).toISOString() });
    await folder.succeed(["whoami"]);
    expect(counting.asked).to.have.length(2);
  });

  it("recovers after a refresh was killed: the lock is free, and the old token still works", async () => {
    await logIn();
    await using counting = await countingProxy(url());
    await changeLogin({
      token_endpoint: `${counting.url}/oauth2/token`,
      expires_at: new Date(0).toISOString(),
    });
    {
      counting.hold();
      await using command = folder.start(["whoami"]);
      await counting.held;
      command.signal("SIGKILL");
      await command.exit();
    }
    counting.release();
    await folder.succeed(["whoami"]);
  });

  it("renews a token that was revoked early, and reports when the login has ended", async () => {
    await logIn();
    const { access_token: token } = await readLogin();
    const revoked = await fetch(`${url()}/oauth2/revoke`, {
      method: "POST",
      body: new URLSearchParams({ token, client_id: "7472756e6b6c696e65636f6d6d616e64" }),
    });
    expect(revoked.status).to.equal(200);
    await folder.succeed(["whoami"]);
    expect((await readLogin()).access_token).to.not.equal(token);

    const { refresh_token } = await readLogin();
    await fetch(`${url()}/oauth2/revoke`, {
      method: "POST",
      body: new URLSearchParams({
        token: refresh_token,
        client_id: "7472756e6b6c696e65636f6d6d616e64",
      }),
    });
    const { code, stderr } = await folder.run(["whoami"]);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: "Cannot go on: the login is over; run trunkline login\n",
    });
  });

  it("ends at logout, on this machine and on the platform", async () => {
    await logIn();
    const { access_token: token } = await readLogin();
    expect((await world.api("/accounts", { token })).status).to.equal(200);
    expect(await folder.succeed(["logout"])).to.equal(`Logged out at ${url()}/v4\n`);
    expect((await world.api("/accounts", { token })).status).to.equal(401);
    expect(await folder.succeed(["logout"])).to.equal("Nobody was logged in\n");
    const { code, stderr } = await folder.run(["whoami"]);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Cannot reach the platform: nobody is logged in; run trunkline login/);
  });

  it("sends a token only to the platform that issued it", async () => {
    await logIn();
    const other = new AppFolder(folder.path, { TRUNKLINE_API_URL: "http://127.0.0.1:9" });
    const { code, stderr } = await other.run(["whoami"]);
    expect(code).to.equal(1);
    expect(stderr).to.include(`Cannot ask http://127.0.0.1:9/v4: you are logged in at ${url()}/v4`);
  });

  it("reports in one line where no platform responds", async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await folder.run(["login", "--url", nowhere]);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: `Cannot reach ${nowhere}: nobody listens there\n`,
    });
    const bad = await folder.run(["login", "--url", "ftp://x"]);
    expect(bad.stderr).to.match(/^Cannot use --url: expected a URL such as/);
  });

  it("is not needed if the environment has a token", async () => {
    const environment = { TRUNKLINE_API_URL: `${url()}/v4`, TRUNKLINE_API_TOKEN: world.token };
    const other = new AppFolder(folder.path, environment);
    expect(await other.succeed(["whoami"])).to.include(world.accountId);
    const bad = new AppFolder(folder.path, { ...environment, TRUNKLINE_ACCOUNT_ID: "x" });
    expect((await bad.run(["whoami"])).stderr).to.equal(
      'Cannot use TRUNKLINE_ACCOUNT_ID: expected 32 hexadecimal digits, not "x"\n',
    );
    const wrong = new AppFolder(folder.path, { ...environment, TRUNKLINE_API_TOKEN: "tl_wrong" });
    const { code, stderr } = await wrong.run(["whoami"]);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Cannot authenticate: /);
  });
});

/** Forwards requests to the platform, and counts them. */
async function countingProxy(target: string) {
  const asked: string[] = [];
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const server = createServer(async (request, response) => {
    asked.push(request.url ?? "");
    const body = Buffer.concat(await Array.fromAsync(request));
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method ?? "GET",
      headers: { "Content-Type": request.headers["content-type"] ?? "" },
      body,
    });
    const text = await answer.text();
    // The platform has issued new tokens, but the proxy does not forward its response.
    if (isHeld) return held.resolve();
    response.writeHead(answer.status, { "Content-Type": "application/json" }).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    held: held.promise,
    hold: () => {
      isHeld = true;
    },
    release: () => {
      isHeld = false;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
