import { expect } from "chai";
import type { ActorClient } from "../actors/runtime/actor-client.ts";
import { ActorError, ERRORS, type ErrorCode } from "../schemas/errors.ts";
import { memoryActors } from "../scripts/testing/memory-actors.ts";
import { routeTable } from "./app.ts";
import { type Route, refusalsOf } from "./route.ts";
import { openAccount, type TestGateway, testGateway, testParts } from "./testing/test-gateway.ts";

/** They are about what has to be made first: members.test.ts and oauth-clients.test.ts ask them, and provoke their refusals. */
const ASKED_ELSEWHERE = new Set([
  "inviteMember",
  "getMember",
  "updateMember",
  "removeMember",
  "createOAuthClient",
  "getOAuthClient",
  "updateOAuthClient",
  "deleteOAuthClient",
  "rotateOAuthClientSecret",
  "deleteOldOAuthClientSecret",
  "listOAuthClientChanges",
]);
const routes = routeTable(testParts(memoryActors({}))).filter(({ id }) => !ASKED_ELSEWHERE.has(id));

/** Bodies that each route accepts. */
const bodies: Record<string, unknown> = {
  createToken: {
    name: "ci",
    policies: [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }],
  },
  renderPdf: { html: "x" },
  startCrawl: { url: "https://example.com/" },
};

describe("every route", () => {
  for (const route of routes) {
    it(`${route.id}() gives every answer that its declaration implies, and no other`, async () => {
      const { failure, through } = failing();
      const gateway = await testGateway({ through });
      try {
        await provokeAll(gateway, route, failure);
        const implied = new Set(
          refusalsOf({ ...route, refusals: [] })
            // A limited gateway is another one, see below.
            .filter((code) => code !== "rate_limited")
            .map((code) => `${route.id} ${ERRORS[code].status}`),
        );
        // What is not declared would have thrown in `ask`.
        expect([...gateway.answered]).to.include.members([...implied, `${route.id} 200`]);
      } finally {
        await gateway.stop();
      }
    });

    it(`${route.id}() counts against the account's requests`, async () => {
      const gateway = await testGateway({ config: { requestsPerWindow: 1 } });
      await ask(gateway, route);
      expect((await ask(gateway, route)).status).to.equal(429);
      await gateway.stop();
    });
  }
});

async function provokeAll(gateway: TestGateway, route: Route, failure: Failure): Promise<void> {
  expect((await ask(gateway, route)).status).to.equal(200);
  expect((await ask(gateway, route, { token: null })).status).to.equal(401);
  expect((await ask(gateway, route, { query: "?unknown=1" })).status).to.equal(400);
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
    const body = JSON.stringify({ ...Object(bodies[route.id]), unknown: 1 });
    expect((await ask(gateway, route, { body })).status).to.equal(400);
  }
  for (const code of ["busy", "unavailable", "deadline_exceeded", "internal_error"] as const) {
    failure.code = code;
    expect((await ask(gateway, route)).status, code).to.equal(ERRORS[code].status);
  }
}

interface Failure {
  code?: ErrorCode;
}

/** Actors that all refuse once there is a code. */
function failing() {
  const failure: Failure = {};
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
    body = JSON.stringify(bodies[route.id]),
  }: {
    token?: string | null;
    accountId?: string;
    query?: string;
    type?: string;
    body?: string;
  } = {},
) {
  // Another token than the one that asks: the id is a part of its text.
  const [, tokenId = ""] = (await gateway.tokenWith("apps.read")).split("_");
  const status = route.id === "cancelCrawl" ? "running" : "completed";
  const path = route.path
    .replace("{account_id}", accountId)
    .replace("{token_id}", tokenId)
    .replace("{job_id}", gateway.crawls.add(accountId, { status }));
  return gateway.ask(`/v4${path}${query}`, {
    method: route.method.toUpperCase(),
    token,
    ...(route.body ? { body, headers: { "Content-Type": type } } : {}),
  });
}
