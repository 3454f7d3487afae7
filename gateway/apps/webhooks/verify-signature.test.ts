import { createHmac } from "node:crypto";
import { sign as githubSign, verify as githubVerify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { HmacScheme } from "../../../schemas/apps/app-config.ts";
import { FORM_FIELDS_MAX } from "../../../schemas/apps/limits.ts";
import { hmacScheme, SIGNATURE_SCHEMES, type SignatureScheme } from "./signature-schemes.ts";
import { type SignedEvent, signedEvent } from "./signed-event.ts";
import { signatureFault } from "./verify-signature.ts";

const NOW = Date.UTC(2026, 10, 20);
const NOW_S = NOW / 1_000;
const SECRET = "It's a Secret to Everybody";
const BODY = '{"text":"grüße","n":1}';

function eventOf(
  headers: Record<string, string>,
  { body = BODY, url = "https://hooks.example/" }: { body?: string | Buffer; url?: string } = {},
): SignedEvent {
  const bytes = Buffer.from(body);
  const lower = Object.entries(headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  const map = new Map(lower);
  return signedEvent({ body: bytes, headers: map, url });
}

const holds = (
  scheme: SignatureScheme,
  event: SignedEvent,
  secrets: readonly string[] = [SECRET],
  now = NOW,
) => signatureFault(scheme, secrets, event, now) === undefined;

const hmac = (algorithm: string, key: string | Buffer, text: string) =>
  createHmac(algorithm, key).update(text);

describe("signatureFault", () => {
  const { github, stripe, slack, shopify, twilio, linear } = SIGNATURE_SCHEMES;
  const standard = SIGNATURE_SCHEMES["standard-webhooks"];

  it("signatureFault() accepts what GitHub's own library signs, and its documented example", async () => {
    const header = await githubSign(SECRET, BODY);
    expect(await githubVerify(SECRET, BODY, header)).to.equal(true);
    expect(holds(github, eventOf({ "X-Hub-Signature-256": header }))).to.equal(true);
    const documented = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const example = eventOf(
      { "X-Hub-Signature-256": `sha256=${documented}` },
      { body: "Hello, World!" },
    );
    expect(holds(github, example)).to.equal(true);
    expect(holds(github, eventOf({ "X-Hub-Signature-256": documented }))).to.equal(false);
  });

  it("signatureFault() and Stripe's own library agree, in both directions", () => {
    const { webhooks } = new Stripe("sk_test_none");
    const headerAt = (timestamp: number, secret = SECRET) =>
      webhooks.generateTestHeaderString({ payload: BODY, secret, timestamp });
    for (const apart of [-301, -300, 0, 300, 301]) {
      const header = headerAt(NOW_S + apart);
      const expected = Math.abs(apart) <= 300;
      expect(holds(stripe, eventOf({ "Stripe-Signature": header })), `${apart}`).to.equal(expected);
    }
    const now = headerAt(Math.floor(Date.now() / 1_000));
    webhooks.signature?.verifyHeader(BODY, now, SECRET);
    // While a secret is rotated, the header has several signatures. One of an old scheme may be among them.
    const [time, mine] = headerAt(NOW_S).split(",");
    const other = headerAt(NOW_S, "other").split(",")[1];
    const several = `${time},${other},${mine},v0=abc`;
    expect(holds(stripe, eventOf({ "Stripe-Signature": several }))).to.equal(true);
    expect(holds(stripe, eventOf({ "Stripe-Signature": `${time},${other}` }))).to.equal(false);
    // A time that differs from the signed one.
    expect(holds(stripe, eventOf({ "Stripe-Signature": `t=${NOW_S + 1},${mine}` }))).to.equal(
      false,
    );
    for (const broken of ["", "t=", `t=1e9,${mine}`, `${mine}`, "v1=zz"]) {
      expect(holds(stripe, eventOf({ "Stripe-Signature": broken })), broken).to.equal(false);
    }
  });

  it("signatureFault() accepts what the library of Standard Webhooks signs, with several signatures and both header names", () => {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const signed = (at: number, key = secret) => ({
      "webhook-id": "msg_1",
      "webhook-timestamp": String(at / 1_000),
      "webhook-signature": new Webhook(key).sign("msg_1", new Date(at), BODY),
    });
    for (const apart of [-300_000, 0, 300_000]) {
      expect(holds(standard, eventOf(signed(NOW + apart)), [secret])).to.equal(true);
    }
    for (const apart of [-301_000, 301_000]) {
      expect(holds(standard, eventOf(signed(NOW + apart)), [secret])).to.equal(false);
    }
    const other = "whsec_c2VjcmV0IG9mIHNvbWVib2R5IGVsc2U=";
    const both = signed(NOW);
    both["webhook-signature"] = `v1a,AAAA ${signed(NOW, other)["webhook-signature"]} ${
      both["webhook-signature"]
    }`;
    expect(holds(standard, eventOf(both), [secret])).to.equal(true);
    expect(holds(standard, eventOf(signed(NOW, other)), [secret])).to.equal(false);
    expect(holds(standard, eventOf(signed(NOW, other)), [secret, other])).to.equal(true);
    expect(holds(standard, eventOf({ ...signed(NOW), "webhook-id": "msg_2" }), [secret])).to.equal(
      false,
    );
    const { "webhook-id": _, ...without } = signed(NOW);
    expect(holds(standard, eventOf(without), [secret])).to.equal(false);
    // The example that the specification's libraries publish.
    const published = {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    const body = '{"test": 2432232314}';
    expect(holds(standard, eventOf(published, { body }), [secret], 1_614_265_330_000)).to.equal(
      true,
    );
  });

  it("signatureFault() accepts a Standard Webhooks secret without its prefix, as base64 and as text", () => {
    const signedWith = (key: string | Buffer) => {
      const text = `msg_1.${NOW / 1_000}.${BODY}`;
      return eventOf({
        "webhook-id": "msg_1",
        "webhook-timestamp": String(NOW / 1_000),
        "webhook-signature": `v1,${createHmac("sha256", key).update(text).digest("base64")}`,
      });
    };
    const key = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64");
    for (const size of [16, 17, 18, 24]) {
      const part = key.subarray(0, size);
      const padded = part.toString("base64");
      for (const secret of [padded, padded.replace(/=+$/, ""), part.toString("base64url")]) {
        for (const prefix of ["", "whsec_"]) {
          expect(holds(standard, signedWith(part), [prefix + secret]), secret).to.equal(true);
        }
        expect(holds(standard, signedWith(secret), [secret]), secret).to.equal(true);
      }
    }
    // A short or broken base64 text is a key only as text. Each of these keys could be guessed.
    const guessable: [string, Buffer][] = [
      ["pw=8fj39Kd02mXq", Buffer.from("pw", "base64")],
      ["a b=8fj39Kd02mXq", Buffer.from("ab", "base64")],
      ["pass word, long and secret!", Buffer.from("passwordlongandsecret", "base64")],
      ["cGFzcw==", Buffer.from("pass")],
      [key.subarray(0, 15).toString("base64"), key.subarray(0, 15)],
    ];
    for (const [secret, wrong] of guessable) {
      expect(holds(standard, signedWith(wrong), [secret]), secret).to.equal(false);
      expect(holds(standard, signedWith(secret), [secret]), secret).to.equal(true);
    }
    for (const secret of ["whsec_pw=8fj39Kd02mXq", "whsec_"]) {
      const wrong = Buffer.from(secret.slice("whsec_".length), "base64");
      expect(holds(standard, signedWith(wrong), [secret]), secret).to.equal(false);
    }
  });

  it("signatureFault() takes Slack's documented example, 300 s in both directions", () => {
    const body =
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const at = 1_531_420_618;
    const headers = {
      "X-Slack-Request-Timestamp": String(at),
      "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    };
    const secrets = ["8f742231b10e8888abcd99yyyzzz85a5"];
    for (const [apart, expected] of [
      [0, true],
      [300, true],
      [-300, true],
      [301, false],
      [-301, false],
    ] as const) {
      const now = (at + apart) * 1_000;
      expect(holds(slack, eventOf(headers, { body }), secrets, now)).to.equal(expected);
    }
    const later = { ...headers, "X-Slack-Request-Timestamp": String(at + 1) };
    expect(holds(slack, eventOf(later, { body }), secrets, at * 1_000)).to.equal(false);
  });

  it("signatureFault() takes Shopify's signature under both names", () => {
    const signature = hmac("sha256", SECRET, BODY).digest("base64");
    for (const name of ["X-Shopify-Hmac-Sha256", "shopify-hmac-sha256"]) {
      expect(holds(shopify, eventOf({ [name]: signature }))).to.equal(true);
      expect(holds(shopify, eventOf({ [name]: `${signature}=` }))).to.equal(false);
    }
  });

  const form = { "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8" };
  const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
  it("signatureFault() takes the vectors of Twilio's libraries: forms, repeated fields, JSON", () => {
    const body =
      "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
    const signed = { ...form, "X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=" };
    expect(holds(twilio, eventOf(signed, { body, url }), ["12345"])).to.equal(true);
    expect(holds(twilio, eventOf(signed, { body: `${body}&x=1`, url }), ["12345"])).to.equal(false);
    expect(holds(twilio, eventOf(signed, { body, url: `${url}&x=1` }), ["12345"])).to.equal(false);
    const repeated = "Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234";
    const other = { ...form, "X-Twilio-Signature": "IK+Dwps556ElfBT0I3Rgjkr1wJU=" };
    expect(holds(twilio, eventOf(other, { body: repeated, url }), ["12345"])).to.equal(true);
    const json = '{"property": "value", "boolean": true}';
    const hash = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620";
    const jsonUrl = `${url}&bodySHA256=${hash}`;
    const ofJson = { "X-Twilio-Signature": "a9nBmqA0ju/hNViExpshrM61xv4=" };
    expect(holds(twilio, eventOf(ofJson, { body: json, url: jsonUrl }), ["12345"])).to.equal(true);
    expect(holds(twilio, eventOf(ofJson, { body: `${json} `, url: jsonUrl }), ["12345"])).to.equal(
      false,
    );
  });

  it("signatureFault() takes Twilio's address with and without the scheme's own port", () => {
    const signed = hmac("sha1", "12345", "https://mycompany.com:443/a?b").digest("base64");
    const asked = { body: "", url: "https://mycompany.com/a?b" };
    const event = eventOf({ "X-Twilio-Signature": signed }, asked);
    expect(holds(twilio, event, ["12345"])).to.equal(true);
  });

  it("signatureFault() takes no body from Twilio that its signature does not cover", () => {
    const fields =
      "CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212";
    const captured = { "X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=" };
    for (const type of ["application/json", "multipart/form-data; boundary=x", "text/plain"]) {
      const headers = { ...captured, "Content-Type": type };
      // The signed text of the form is the same as that of a longer URL without a form.
      const forged = eventOf(headers, { body: '{"Digits":"9"}', url: url + fields });
      expect(holds(twilio, forged, ["12345"]), type).to.equal(false);
    }
    expect(holds(twilio, eventOf(captured, { url: url + fields }), ["12345"])).to.equal(false);
  });

  it("signatureFault() takes Linear's time from the signed body, 60 s in both directions", () => {
    for (const [apart, expected] of [
      [0, true],
      [60, true],
      [-60, true],
      [61, false],
      [-61, false],
    ] as const) {
      const body = JSON.stringify({ webhookTimestamp: NOW + apart * 1_000 });
      const signed = { "Linear-Signature": hmac("sha256", SECRET, body).digest("hex") };
      expect(holds(linear, eventOf(signed, { body })), `${apart}`).to.equal(expected);
    }
    const signed = {
      "Linear-Signature": hmac("sha256", SECRET, BODY).digest("hex"),
      "Linear-Timestamp": String(NOW),
    };
    expect(holds(linear, eventOf(signed))).to.equal(false);
  });

  for (const algorithm of ["sha1", "sha256", "sha512"] as const) {
    for (const encoding of ["hex", "base64"] as const) {
      it(`signatureFault() takes a declared HMAC of ${algorithm} in ${encoding}`, () => {
        const scheme = hmacScheme(
          HmacScheme.parse({ header: "X-Sig", algorithm, encoding, prefix: "p=" }),
        );
        const value = hmac(algorithm, SECRET, BODY).digest(encoding);
        expect(holds(scheme, eventOf({ "X-Sig": `p=${value}` }))).to.equal(true);
        expect(holds(scheme, eventOf({ "X-Sig": value }))).to.equal(false);
        expect(holds(scheme, eventOf({ "X-Sig": `p=${value.slice(0, -4)}` }))).to.equal(false);
        expect(holds(scheme, eventOf({}))).to.equal(false);
      });
    }
  }

  it("signatureFault() holds a declared HMAC to its time", () => {
    const scheme = hmacScheme(
      HmacScheme.parse({ header: "X-Sig", timestamp_header: "X-Time", tolerance_seconds: 10 }),
    );
    const signed = (at: number) => ({
      "X-Time": String(at),
      "X-Sig": hmac("sha256", SECRET, `${at}.${BODY}`).digest("hex"),
    });
    for (const [apart, expected] of [
      [10, true],
      [-10, true],
      [11, false],
      [-11, false],
    ] as const) {
      expect(holds(scheme, eventOf(signed(NOW_S + apart)))).to.equal(expected);
    }
    const { "X-Time": _, ...without } = signed(NOW_S);
    expect(holds(scheme, eventOf(without))).to.equal(false);
  });

  it("signatureFault() reads no field of an event whose signature is wrong", () => {
    const read: string[] = [];
    for (const [provider, scheme] of Object.entries(SIGNATURE_SCHEMES)) {
      const { body, headers, url } = eventOf({
        [scheme.headers[0] ?? ""]: "00",
        "Stripe-Signature": `t=${NOW_S},v1=00`,
        "X-Slack-Request-Timestamp": String(NOW_S),
        "webhook-id": "msg_1",
        "webhook-timestamp": String(NOW_S),
      });
      const event = {
        ...{ body, headers, url },
        get fields() {
          read.push(provider);
          return {};
        },
      };
      expect(holds(scheme, event), provider).to.equal(false);
    }
    expect(read).to.deep.equal([]);
  });

  it("signatureFault() takes a form of as many fields as the limit permits, and refuses one more", () => {
    const signed = (fields: number) => {
      const names = Array.from({ length: fields }, (_, index) => `f${index}`);
      const text = url + names.toSorted().join("");
      const signature = hmac("sha1", SECRET, text).digest("base64");
      return eventOf({ ...form, "X-Twilio-Signature": signature }, { body: names.join("&"), url });
    };
    expect(holds(twilio, signed(FORM_FIELDS_MAX))).to.equal(true);
    expect(() => holds(twilio, signed(FORM_FIELDS_MAX + 1))).to.throw("at most 1000 fields");
  });

  it("signatureFault() takes any of several secrets, bytes that are no text, and no empty secret", () => {
    const body = Buffer.from([0, 255, 254, 13, 10]);
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    const event = eventOf({ "X-Hub-Signature-256": signature }, { body });
    expect(holds(github, event, ["old", SECRET])).to.equal(true);
    expect(holds(github, event, ["old"])).to.equal(false);
    expect(holds(github, event, [])).to.equal(false);
    const empty = `sha256=${createHmac("sha256", "").update(body).digest("hex")}`;
    expect(holds(github, eventOf({ "X-Hub-Signature-256": empty }, { body }), [""])).to.equal(
      false,
    );
  });
});
