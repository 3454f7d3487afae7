import { expect } from "chai";
import type { LiveClient } from "../clients/live-client.ts";
import { clientHeading } from "./client-heading.ts";

const verification = {
  status: "verified" as const,
  host: "bot.example.com",
  text: "a text",
  verifiedAt: Date.UTC(2026, 9, 1),
};

describe("client heading", () => {
  it("shows a host as verified as long as its DNS record exists", () => {
    expect(said({ verification } as Partial<LiveClient>)).to.contain("which has confirmed it");
    const missing = { ...verification, missingSince: Date.UTC(2026, 10, 2) };
    expect(said({ verification: missing } as Partial<LiveClient>))
      .to.contain("has not done so any more since")
      .and.to.contain("2026-11-02")
      .and.to.contain("Go on only if you know who runs it.")
      .and.not.to.contain("Published by");
    const other = { ...verification, host: "other.example.com" };
    for (const changes of [{}, { verification: other }, { verification, clientUri: undefined }]) {
      expect(said(changes as Partial<LiveClient>)).to.contain("Its publisher is not verified.");
    }
  });
});

function said(changes: Partial<LiveClient>): string {
  const client: LiveClient = {
    clientName: "Bot",
    clientUri: "https://bot.example.com/",
    grantTypes: ["authorization_code"],
    responseTypes: ["code"],
    redirectUris: [],
    postLogoutRedirectUris: [],
    scopes: ["account.read"],
    optionalScopes: [],
    tokenEndpointAuthMethod: "none",
    allowedCorsOrigins: [],
    accountId: "a".repeat(32),
    visibility: "public",
    secrets: [],
    createdAt: 0,
    updatedAt: 0,
    ...changes,
  };
  return clientHeading(client, {}).toString();
}
