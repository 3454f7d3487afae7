/**
 * Starts a nats-server for a test. Its users have the rights in deploy/bus-permissions, and their seeds are in a
 * folder.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusLogin, nkeyAccess } from "../bus-users/bus-access.ts";
import { makeSeeds, type PublicKeys, seedFile } from "../bus-users/seeds.ts";
import { serverPart } from "../bus-users/server-part.ts";
import { BUS_USERS, type BusUserName } from "../bus-users/users.ts";
import { startNats, type TestNatsServer } from "./nats-server.ts";

/** A user with all rights and a password, like the operator's user on an embedded server. */
const PERSON = "{ user: trunkline, password: $TRUNKLINE_NATS_PASSWORD }";

export class SecuredNats implements AsyncDisposable {
  readonly server: TestNatsServer;
  /** The folder of the seeds. */
  readonly folder: string;
  /** Lines of the server's log that report rejected requests of users. */
  readonly violations: string[];
  readonly publicKeys: PublicKeys;
  readonly #access: (name: BusUserName) => BusLogin;

  static async start(): Promise<SecuredNats> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-seeds-"));
    const { publicKeys } = await makeSeeds(folder);
    const violations: string[] = [];
    const server = await startNats({
      config: serverPart(publicKeys, [PERSON]),
      onLine: (line) => {
        if (/Violation/.test(line)) violations.push(line);
      },
    });
    const access = await nkeyAccess({ url: server.url }, folder, BUS_USERS);
    return new SecuredNats({ server, folder, violations, publicKeys, access });
  }

  constructor(parts: {
    server: TestNatsServer;
    folder: string;
    violations: string[];
    publicKeys: PublicKeys;
    access: (name: BusUserName) => BusLogin;
  }) {
    this.server = parts.server;
    this.folder = parts.folder;
    this.violations = parts.violations;
    this.publicKeys = parts.publicKeys;
    this.#access = parts.access;
  }

  /** The options of `Bus.connect` for this user. */
  login(name: BusUserName): BusLogin {
    return this.#access(name);
  }

  /** Settings of a process that uses only this user. */
  settings(name: BusUserName): NodeJS.ProcessEnv {
    const { origin } = new URL(this.server.url.replace("nats:", "http:"));
    return {
      TRUNKLINE_NATS_URL: origin.replace("http:", "nats:"),
      TRUNKLINE_NATS_NKEYS: seedFile(this.folder, name),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    await rm(this.folder, { recursive: true });
  }
}
