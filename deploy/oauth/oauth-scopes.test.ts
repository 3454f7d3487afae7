/**
 * Requests every route of the REST API with OAuth access tokens. A route must accept a token with the scope that it
 * declares, and refuse tokens with other scopes.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Person, REDIRECT_URI } from "../../gateway/oauth/testing/oauth-world.ts";
import { ALL_PERMISSIONS, type Permission, permits } from "../../schemas/account/permissions.ts";
import { startNats, type TestNatsServer } from "../../scripts/testing/nats-server.ts";
import { type Credentials, RoleProcess } from "../../scripts/testing/role-process.ts";

interface Operation {
  method: string;
  path: string;
  needed: Permission;
  /** The media type of the request body, if it has one. */
  type: string | undefined;
}

/** An id in a form that every route accepts, but of nothing that exists. */
const UNKNOWN = "f".repeat(32);

describe("OAuth scopes on the REST API", function () {
  this.timeout(300_000);
  let folder: string;
  let nats: TestNatsServer;
  let node: RoleProcess;
  let given: Credentials;
  let operations: Operation[];
  const tokens = new Map<Permission, string>();
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-scopes-"));
    nats = await startNats();
    node = await RoleProcess.start("node", folder, {
      TRUNKLINE_ROLES: "gateway,actors",
      TRUNKLINE_NATS_URL: nats.url,
      TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
    });
    await node.ready();
    given = await node.credentials();
    // Excludes the routes of a person, because no token has access to them. session-door.test.ts tests
    // these routes.
    operations = (await readOperations()).filter(({ path }) => !path.startsWith("/user/"));
    await takeTokens();
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    await nats?.stop();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it("each scope has a route", () => {
    expect(new Set(operations.map(({ needed }) => needed))).to.deep.equal(new Set(ALL_PERMISSIONS));
  });

  it("each route refuses tokens of other scopes, and of the read scope if it writes", async () => {
    for (const operation of operations) {
      const others = ALL_PERMISSIONS.filter((held) => !permits([held], operation.needed));
      for (const held of new Set([others[0], nearest(others, operation.needed)])) {
        if (held) expect(await ask(operation, held), `${held} ${name(operation)}`).to.equal(403);
      }
    }
  });

  it("each route accepts a token with only its scope", async () => {
    for (const operation of operations) {
      const status = await ask(operation, operation.needed);
      expect([401, 403], name(operation)).not.to.include(status);
      expect(status, name(operation)).to.be.below(500);
    }
  });

  const name = ({ method, path }: Operation) => `${method} ${path}`;
  /** Returns a held permission for the same part of the API, such as read if write is needed. */
  const nearest = (held: readonly Permission[], needed: Permission) =>
    held.find((one) => one.split(".")[0] === needed.split(".")[0]);

  async function ask({ method, path, type }: Operation, held: Permission): Promise<number> {
    const filled = path.replace("{account_id}", given.account_id).replaceAll(/\{[^}]+\}/g, UNKNOWN);
    const response = await fetch(given.base_url + filled, {
      method,
      headers: {
        Authorization: `Bearer ${tokens.get(held)}`,
        ...(type !== undefined && { "Content-Type": type }),
      },
      ...(type !== undefined && { body: '{"never":"good"}' }),
      signal: AbortSignal.timeout(60_000),
    });
    await response.body?.cancel();
    return response.status;
  }

  async function readOperations(): Promise<Operation[]> {
    type Described = { "x-permissions": Permission[]; requestBody?: { content: object } };
    const answer = await fetch(`${given.base_url}/openapi.json`);
    const { paths } = (await answer.json()) as { paths: Record<string, Record<string, Described>> };
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, described]) => {
        const [needed] = described["x-permissions"] ?? [];
        const [type] = Object.keys(described.requestBody?.content ?? {});
        return needed ? [{ method: method.toUpperCase(), path, needed, type }] : [];
      }),
    );
  }

  /** Obtains one access token for each permission, all for the same person and the same client. */
  async function takeTokens(): Promise<void> {
    const { base_url, account_id, api_token } = given;
    const made = await fetch(`${base_url}/accounts/${account_id}/oauth_clients`, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify({
        client_name: "All of it",
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: [REDIRECT_URI],
        scopes: ALL_PERMISSIONS,
        token_endpoint_auth_method: "client_secret_post",
      }),
    });
    const { result } = (await made.json()) as {
      result: { client_id: string; client_secret: string };
    };
    const { client_id, client_secret } = result;
    const { origin } = new URL(base_url);
    const person = new Person(origin);
    await person.open("/login");
    await person.signIn(given.user);
    for (const scope of ALL_PERMISSIONS) {
      const asked = { client_id, response_type: "code", redirect_uri: REDIRECT_URI, scope };
      await person.open(`/oauth2/auth?${new URLSearchParams(asked)}`);
      await person.submit({ decision: "allow" });
      const code = new URL(person.seen.url).searchParams.get("code") ?? "";
      const fields = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI };
      const body = new URLSearchParams({ ...fields, client_id, client_secret });
      const answer = await fetch(`${origin}/oauth2/token`, { method: "POST", body });
      const { access_token } = (await answer.json()) as { access_token: string };
      tokens.set(scope, access_token);
    }
  }
});
