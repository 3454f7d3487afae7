import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { expect } from "chai";
import { oauthKeysActor } from "../../../actors/oauth/oauth-keys/oauth-keys.ts";
import { KEY_LEAD_MS } from "../../../schemas/oauth/limits.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { KEY_SIGNS_MS, loadKeys, type ServerKeys } from "./signing-keys.ts";

describe("signing-keys", () => {
  let now: number;
  let load: () => Promise<ServerKeys>;
  beforeEach(() => {
    now = 1_000;
    const actors = memoryActors({ actors: [oauthKeysActor], now: () => now });
    load = () => loadKeys(actors, now);
  });

  const kids = ({ jwks }: ServerKeys) => jwks.keys.map(({ kid }) => kid);

  it("loadKeys() makes the first key, and the next one after KEY_SIGNS_MS", async () => {
    const first = await load();
    expect(kids(first)).to.have.length(1);
    now += KEY_SIGNS_MS - 1;
    expect(await load()).to.deep.equal(first);
    now += 1;
    const second = await load();
    expect(kids(second)).to.have.length(2);
    expect(second.secret).to.equal(first.secret);
    expect(await load()).to.deep.equal(second);
  });

  it("loadKeys() signs with a key published for KEY_LEAD_MS; signatures of the key before still verify", async () => {
    const first = await load();
    const old = signed(first);
    now += KEY_SIGNS_MS;
    const [signing, next] = kids(await load());
    now += KEY_LEAD_MS - 1;
    const shown = await load();
    expect(kids(shown)).to.deep.equal([signing, next]);
    expect(signed(shown).kid).to.equal(kids(first)[0]);
    now += 1;
    const turned = await load();
    expect(kids(turned)).to.deep.equal([next, signing]);
    const fresh = signed(turned);
    expect(fresh.kid).to.equal(next);
    for (const keys of [shown, turned]) {
      for (const token of [old, fresh]) expect(isVerified(keys, token)).to.equal(true);
    }
    expect(isVerified(turned, { ...old, kid: fresh.kid })).to.equal(false);
  });

  const text = Buffer.from("an ID token");

  function signed({ jwks }: ServerKeys) {
    const [jwk = {}] = jwks.keys;
    const key = createPrivateKey({ key: jwk, format: "jwk" });
    return { kid: jwk.kid, signature: sign("sha256", text, key) };
  }

  function isVerified({ jwks }: ServerKeys, { kid, signature }: ReturnType<typeof signed>) {
    const { kty, n, e } = jwks.keys.find((jwk) => jwk.kid === kid) ?? {};
    const key = createPublicKey({ key: { kty, n, e } as Record<string, string>, format: "jwk" });
    return verify("sha256", text, key, signature);
  }
});
