import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { ActorClient } from "../actors/runtime/calls/actor-client.ts";
import { account } from "../schemas/account/account.ts";
import { ALL_PERMISSIONS } from "../schemas/account/permissions.ts";
import { ActorError, ERRORS, type ErrorCode } from "../schemas/errors.ts";
import { CreateOAuthClient, settingsOf } from "../schemas/oauth/http/oauth-clients.ts";
import { oauthClient } from "../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../schemas/oauth/oauth-client-list.ts";
import { renderJobs, requestObjectOf } from "../schemas/rendering/render-jobs.ts";
import { memoryActors } from "../scripts/testing/memory-actors.ts";
import { until } from "../scripts/testing/until.ts";
import { newInvitation } from "./account/invitation-text.ts";
import { routeTable } from "./app.ts";
import { type Route, refusalsOf } from "./http/route.ts";
import { newClientSecret } from "./oauth/clients/client-secret.ts";
import { openAccount, type TestGateway, testGateway, testParts } from "./testing/test-gateway.ts";

const routes = routeTable(testParts(memoryActors({})));

/** Bodies of routes whose declared example this test cannot send. */
const bodies: Record<string, unknown> = {
  createToken: {
    name: "ci",
    policies: [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }],
  },
  renderPdf: { html: "x" },
  takeScreenshot: { html: "x" },
  getContent: { html: "x" },
  getMarkdown: { html: "x" },
  getLinks: { html: "x" },
  scrapePage: { html: "x", elements: [{ selector: "p" }] },
  takeSnapshot: { html: "x" },
  extractJson: { html: "x", prompt: "the title" },
  getAccessibilityTree: { html: "x" },
  startCrawl: { url: "https://example.com/" },
  inviteMember: { email: "ada@example.com", roles: ["Member"] },
  updateMember: { roles: ["Administrator"] },
  createOAuthClient: {
    client_name: "Build Bot",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["https://bot.example.com/callback"],
    scopes: ["artifacts.read"],
    token_endpoint_auth_method: "client_secret_basic",
  },
  updateOAuthClient: { client_name: "Other Bot" },
  updateToken: {
    name: "printer",
    policies: [{ effect: "allow", permission_groups: [{ id: "account.read" }] }],
  },
};

/** Returns a body that the route accepts: that of the list above, or the example of its schema. */
function bodyOf({ id, body }: Route): unknown {
  const { example, examples } = body?.schema.meta() ?? {};
  return bodies[id] ?? example ?? (examples as readonly unknown[] | undefined)?.[0];
}

/**
 * Routes that answer 200 only to a signed-in person. public-sdk.test.ts, session-door.test.ts and operations.test.ts
 * test them.
 */
const OF_PERSONS = [
  ...["getUser", "listSessions", "endSession", "leaveAccount"],
  ...["listAdministrators", "addAdministrator", "removeAdministrator"],
];
const driven = routes.filter(({ id }) => !OF_PERSONS.includes(id));

describe("every route", function () {
  this.timeout(300_000);
  for (const route of driven) {
    it(`${route.id}() gives every answer that its declaration implies, and no other`, async () => {
      const { failure, through } = failing();
      const gateway = await testGateway({ through, isDiskFull: () => failure.isDiskFull });
      try {
        await provokeAll(gateway, route, failure);
        const implied = new Set(
          refusalsOf({ ...route, refusals: [] })
            // Rate limits are tested with another gateway, see below.
            .filter((code) => code !== "rate_limited")
            // Without a body no request is invalid, because unknown query parameters are ignored.
            .filter((code) => code !== "invalid_request" || route.body !== undefined)
            .map((code) => `${route.id} ${ERRORS[code].status}`),
        );
        // `ask` throws for undeclared answers.
        expect([...gateway.answered]).to.include.members([...implied, `${route.id} 200`]);
      } finally {
        await gateway.stop();
      }
    });

    it(`${route.id}() counts against the account's requests`, async () => {
      const gateway = await testGateway({ config: { requestsPerWindow: 1 } });
      await ask(gateway, route);
      const { status, headers } = await ask(gateway, route);
      const counts = headers.get("ratelimit");
      // limit-requests.test.ts tests what refuses these routes.
      if (route.isRevocation) expect(counts).to.match(/^"default";r=0;.* "revocations";r=59;/);
      else expect(status).to.equal(429);
      await gateway.stop();
    });
  }
});

async function provokeAll(gateway: TestGateway, route: Route, failure: Failure): Promise<void> {
  expect((await ask(gateway, route)).status).to.equal(200);
  expect((await ask(gateway, route, { token: null })).status).to.equal(401);
  expect((await ask(gateway, route, { query: "?unknown=1" })).status).to.equal(200);
  if (route.body) expect((await ask(gateway, route, { body: "[]" })).status).to.equal(400);
  if (route.permissions) {
    const token = await gateway.tokenWith("artifacts.read");
    expect((await ask(gateway, route, { token })).status).to.equal(403);
  }
  if (route.path.includes("{account_id}")) {
    const other = await openAccount(gateway.actors, "Two");
    expect((await ask(gateway, route, { accountId: other })).status).to.equal(404);
  }
  if (route.body) {
    const large = " ".repeat(route.body.bytesMax + 1);
    expect((await ask(gateway, route, { body: large })).status).to.equal(413);
    expect((await ask(gateway, route, { type: "text/plain" })).status).to.equal(415);
    const body = JSON.stringify({ ...Object(bodyOf(route)), unknown: 1 });
    expect((await ask(gateway, route, { body })).status).to.equal(400);
  }
  for (const code of ["busy", "unavailable", "deadline_exceeded", "internal_error"] as const) {
    failure.code = code;
    expect((await ask(gateway, route)).status, code).to.equal(ERRORS[code].status);
  }
  failure.isDiskFull = true;
  const isRefused = refusalsOf({ ...route, refusals: [] }).includes("storage_full");
  // A rendering call stores much only as a job.
  const { status } = await ask(gateway, route, { isJob: true });
  expect(status).to.equal(ERRORS[isRefused ? "storage_full" : "internal_error"].status);
}

/** Creates a rendering job that has ended. For the route that cancels a job, the job is still running. */
async function newJob(
  { objects, actors }: Pick<TestGateway, "objects" | "actors">,
  routeId: string,
  accountId: string,
): Promise<string> {
  const id = randomBytes(16).toString("hex");
  const html = routeId === "cancelJob" ? "hang" : "x";
  await objects.putBytes(requestObjectOf(accountId, id), Buffer.from(JSON.stringify({ html })));
  const room = { requestBytes: 10, bytesMax: 1_000_000 };
  const job = { ...room, id, call: "pdf" as const, cacheTtlS: 0 };
  await actors.call(renderJobs, accountId, "create", job);
  const status = async () => (await actors.call(renderJobs, accountId, "get", { id })).status;
  if (html === "x") await until("the job has ended", async () => (await status()) === "completed");
  return id;
}

interface Failure {
  isDiskFull: boolean;
  code?: ErrorCode;
}

/** Returns a client of the actors. While `failure.code` is set, every call is refused with this code. */
function failing() {
  const failure: Failure = { isDiskFull: false };
  const through = (actors: ActorClient): ActorClient => ({
    ...actors,
    call(...parameters) {
      if (failure.code === undefined) return actors.call(...parameters);
      return Promise.reject(new ActorError(failure.code, "Cannot answer"));
    },
  });
  return { failure, through };
}

async function ask(
  gateway: TestGateway,
  route: Route,
  {
    token = gateway.token,
    accountId = gateway.accountId,
    query = "",
    type = "application/json",
    body = JSON.stringify(bodyOf(route)),
    isJob = false,
  }: {
    token?: string | null;
    accountId?: string;
    query?: string;
    type?: string;
    body?: string;
    isJob?: boolean;
  } = {},
) {
  let path = route.path.replace("{account_id}", accountId);
  for (const [parameter, make] of Object.entries(MADE)) {
    if (path.includes(parameter))
      path = path.replace(parameter, await make(gateway, route, accountId));
  }
  // For a parameter without an entry in MADE, the test sends the name of the parameter.
  path = path.replaceAll(/[{}]/g, "");
  return gateway.ask(`/v4${path}${query}`, {
    method: route.method.toUpperCase(),
    token,
    headers: {
      ...(route.body && { "Content-Type": type }),
      ...(isJob && { Prefer: "respond-async" }),
    },
    ...(route.body && { body }),
  });
}

/**
 * For each path parameter that names a resource, a function that creates the resource before each request, because the
 * request may delete it. It does not use the gateway, which may be failing.
 */
const MADE: Record<
  string,
  (gateway: TestGateway, route: Route, accountId: string) => Promise<string>
> = {
  async "{token_id}"({ tokenWith }) {
    // Returns the id of a token other than the caller's. The id is a part of the token's text.
    const [, tokenId = ""] = (await tokenWith("apps.read")).split("_");
    return tokenId;
  },

  async "{role_id}"() {
    return "Member";
  },

  async "{job_id}"({ crawls, objects, actors }, { id, path }, accountId) {
    if (path.includes("/jobs/")) return await newJob({ objects, actors }, id, accountId);
    return crawls.add(accountId, { status: id === "cancelCrawl" ? "running" : "completed" });
  },

  async "{member_id}"({ actors }, _route, accountId) {
    const { id, secretHash } = newInvitation(accountId);
    const by = { permissions: ALL_PERMISSIONS };
    const invitation = { id, secretHash, email: `${id}@example.com`, roles: ["Member" as const] };
    await actors.call(account, accountId, "invite", { ...invitation, by });
    return id;
  },

  async "{client_id}"({ actors }, route, accountId) {
    const id = randomBytes(16).toString("hex");
    const by = { type: "api_token" as const, id };
    const secret = ({ hash, lastFour } = newClientSecret()) => ({ hash, lastFour });
    await actors.call(oauthClientList, accountId, "reserve", { clientId: id });
    await actors.call(oauthClient, id, "create", {
      ...{ accountId, by, secret: secret(), pace: { pollMs: 60_000, windowMs: 60_000 } },
      settings: settingsOf(CreateOAuthClient.parse(bodies.createOAuthClient)),
    });
    // Adds a second secret, so that there is an old one to delete.
    if (route.id === "deleteOldOAuthClientSecret") {
      await actors.call(oauthClient, id, "addSecret", { accountId, by, secret: secret() });
    }
    return id;
  },
};
