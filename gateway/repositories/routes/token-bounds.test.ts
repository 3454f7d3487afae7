import { expect } from "chai";
import type { Caller } from "../../http/caller.ts";
import { tokenBounds } from "./token-bounds.ts";

describe("tokenBounds()", () => {
  const now = 1_000_000;
  const caller: Caller = { accountId: "a", tokenId: "t", permissions: ["artifacts.write"] };

  it("gives a token the requested lifetime, or a day", () => {
    expect(tokenBounds(caller, now, 600)).to.deep.equal({ ttlS: 600 });
    expect(tokenBounds(caller, now)).to.deep.equal({ ttlS: 86_400 });
  });

  it("ends a token with the API token of its maker, but not before a minute", () => {
    const ending = { ...caller, expiresAt: now + 600_500 };
    expect(tokenBounds(ending, now)).to.deep.equal({ ttlS: 600 });
    expect(tokenBounds(ending, now, 599)).to.deep.equal({ ttlS: 599 });
    expect(tokenBounds({ ...caller, expiresAt: now + 1 }, now)).to.deep.equal({ ttlS: 60 });
  });

  it("binds a token to the grant of its maker, whose access token may end earlier", () => {
    const grantId = "9".repeat(32);
    const ending = { ...caller, grantId, expiresAt: now + 600_000 };
    const ofClient: Caller = { ...ending, scopes: ["artifacts.write"] };
    expect(tokenBounds(ofClient, now)).to.deep.equal({ ttlS: 86_400, grantId });
    expect(tokenBounds(ending, now)).to.deep.equal({ ttlS: 600, grantId });
  });
});
