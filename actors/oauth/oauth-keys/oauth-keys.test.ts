import { expect } from "chai";
import { KEY_SIGNS_MS } from "../../../gateway/oauth/provider/signing-keys.ts";
import { KEY_LEAD_MS } from "../../../schemas/oauth/limits.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { KEY_KEPT_MS, oauthKeysActor } from "./oauth-keys.ts";

const key = (kid: string) => ({ kid, jwk: { kty: "RSA" } });
const secret = "s".repeat(43);

describe("oauth-keys", () => {
  it("offer() accepts the first of several concurrent keys, and returns the valid keys to all callers", () => {
    const first = offer(oauthKeysActor.initial, { after: null, key: key("a"), secret }, 1);
    const late = offer(first.state, { after: null, key: key("b"), secret: "t".repeat(43) }, 1);
    expect(late.changed).to.equal(false);
    expect(late.reply.signing.map(({ kid }) => kid)).to.deep.equal(["a"]);
    expect(late.reply.secret).to.equal(secret);
  });

  it("offer() keeps an old key until KEY_KEPT_MS after it stopped signing", () => {
    let { state } = offer(oauthKeysActor.initial, { after: null, key: key("a"), secret }, 1);
    state = offer(state, { after: "a", key: key("b"), secret }, 1 + KEY_SIGNS_MS).state;
    expect(state.keys?.signing.map(({ kid }) => kid)).to.deep.equal(["a", "b"]);
    const until = 1 + KEY_SIGNS_MS + KEY_LEAD_MS + KEY_KEPT_MS;
    const at = (now: number) =>
      offer(state, { after: "b", key: key("c"), secret }, now).reply.signing.map(({ kid }) => kid);
    expect(at(until - 1)).to.deep.equal(["a", "b", "c"]);
    expect(at(until)).to.deep.equal(["b", "c"]);
  });
});

function offer(
  state: Parameters<typeof oauthKeysActor.handlers.offer>[0],
  input: Parameters<typeof oauthKeysActor.handlers.offer>[1],
  now: number,
) {
  return runHandler(oauthKeysActor, "offer", state, input, { now });
}
