import { expect } from "chai";
import {
  clientUriFault,
  matchesRedirectUri,
  originFault,
  redirectUriFault,
  webUriFault,
} from "./client-uris.ts";

describe("addresses of OAuth clients", () => {
  const everybodys = [
    "https://app.example.com/callback",
    "https://app.example.com",
    "https://app.example.com/",
    "https://app.example.com:8443/callback?tenant=1&x=%20",
    "https://xn--bcher-kva.example/callback",
    "https://[2001:db8::1]/callback",
    "http://127.0.0.1:3000/callback",
    "http://127.0.0.1/callback",
    "http://[::1]:3000/callback",
    "http://localhost:3000",
  ];
  for (const uri of everybodys) {
    it(`redirectUriFault() accepts ${uri}`, () => {
      expect(redirectUriFault(uri, { isPublic: false })).to.equal(undefined);
      expect(redirectUriFault(uri, { isPublic: true })).to.equal(undefined);
    });
  }

  for (const uri of ["com.example.app:/callback", "com.example.app://callback", "a.b:c"]) {
    it(`redirectUriFault() accepts ${uri} only for a client without a secret`, () => {
      expect(redirectUriFault(uri, { isPublic: true })).to.equal(undefined);
      expect(redirectUriFault(uri, { isPublic: false })).to.match(/"none"/);
    });
  }

  const faults: [string, RegExp][] = [
    ["", /ASCII/],
    ["/callback", /Expected a URI/],
    ["app.example.com/callback", /Expected a URI/],
    ["https://", /Expected a URI/],
    ["https:///callback", /normal form/],
    ["https:app.example.com", /normal form/],
    ["https://app.example.com/#", /fragment/],
    ["https://app.example.com/callback#a", /fragment/],
    ["com.example.app:/callback#a", /fragment/],
    ["https://*.example.com/callback", /Expected no \*/],
    ["https://app.example.com/*", /Expected no \*/],
    ["com.example.app:/*", /Expected no \*/],
    ["https://user@app.example.com/", /user information/],
    ["https://@app.example.com/", /user information/],
    ["https://user:password@app.example.com/", /user information/],
    ["http://127.0.0.1@evil.example/", /user information/],
    ["com.example.app://user@callback", /user information/],
    ["http://app.example.com/callback", /https, or http with the host/],
    ["http://127.0.0.1.evil.example/callback", /https, or http with the host/],
    ["http://localhost.evil.example/", /https, or http with the host/],
    ["http://127.1/callback", /https, or http with the host/],
    ["http://2130706433/", /https, or http with the host/],
    ["http://0.0.0.0/", /https, or http with the host/],
    ["javascript:alert(1)", /scheme with a dot/],
    ["data:text/html,x", /scheme with a dot/],
    ["myapp://callback", /scheme with a dot/],
    ["HTTPS://app.example.com/", /scheme with a dot/],
    ["https://APP.example.com/", /normal form, "https:\/\/app\.example\.com\/"/],
    ["https://app.example.com:443/", /normal form/],
    ["https://app.example.com/a/../b", /normal form/],
    ["https://app.example.com\\@evil.example/", /ASCII/],
    ["https://app.example.com/ a", /ASCII/],
    ["https://app.example.com/\n", /ASCII/],
    ["https://bücher.example/", /ASCII/],
    ["http://localhost:99999/", /Expected a URI/],
  ];
  for (const [uri, expected] of faults) {
    it(`redirectUriFault() refuses ${JSON.stringify(uri)}`, () => {
      expect(redirectUriFault(uri, { isPublic: true })).to.match(expected);
    });
  }

  it("webUriFault() accepts https only", () => {
    expect(webUriFault("https://example.com/policy")).to.equal(undefined);
    for (const uri of ["http://example.com/", "http://localhost/", "com.example.app:/x"]) {
      expect(webUriFault(uri), uri).to.match(/https URL/);
    }
    expect(webUriFault("https://me@example.com/")).to.match(/user information/);
    expect(webUriFault("https://example.com/#a")).to.match(/fragment/);
  });

  it("clientUriFault() accepts a host that DNS can verify", () => {
    for (const uri of [
      "https://example.com",
      "https://a.b.example.co.uk:8443/x",
      "https://_a.example.com/",
    ]) {
      expect(clientUriFault(uri), uri).to.equal(undefined);
    }
    for (const uri of [
      "https://192.0.2.1/",
      "https://[2001:db8::1]/",
      "https://localhost/",
      "https://example.com./",
      `https://${"a.".repeat(127)}com/`,
    ]) {
      expect(clientUriFault(uri), uri).to.match(/domain name/);
    }
    expect(clientUriFault("http://example.com/")).to.match(/https URL/);
  });

  it("originFault() accepts origins only", () => {
    for (const origin of [
      "https://app.example.com",
      "https://app.example.com:8443",
      "http://localhost:3000",
      "http://[::1]",
    ]) {
      expect(originFault(origin), origin).to.equal(undefined);
    }
    for (const origin of [
      "",
      "*",
      "null",
      "https://app.example.com/",
      "https://app.example.com/path",
      "https://app.example.com?x",
      "https://APP.example.com",
      "https://app.example.com:443",
      "https://*.example.com",
      "https://me@app.example.com",
      "http://app.example.com",
      "com.example.app://x",
    ]) {
      expect(originFault(origin), origin).to.match(/Expected an origin/);
    }
  });

  it("matchesRedirectUri() requires the same text, and accepts any port on loopback addresses", () => {
    const https = "https://app.example.com/callback";
    expect(matchesRedirectUri(https, https)).to.equal(true);
    for (const asked of [
      `${https}/`,
      `${https}?a=1`,
      "https://app.example.com:8443/callback",
      "http://app.example.com/callback",
    ]) {
      expect(matchesRedirectUri(https, asked), asked).to.equal(false);
    }
    const loopback = "http://127.0.0.1/callback";
    for (const asked of [
      loopback,
      "http://127.0.0.1:3000/callback",
      "http://127.0.0.1:1/callback",
    ]) {
      expect(matchesRedirectUri(loopback, asked), asked).to.equal(true);
      expect(matchesRedirectUri("http://127.0.0.1:9999/callback", asked), asked).to.equal(true);
    }
    for (const asked of [
      "http://localhost:3000/callback",
      "http://127.0.0.1:3000/other",
      "http://127.0.0.1:3000/callback#a",
      "http://127.0.0.1:3000@evil.example/callback",
      "http://127.0.0.1:99999/callback",
      "https://127.0.0.1:3000/callback",
    ]) {
      expect(matchesRedirectUri(loopback, asked), asked).to.equal(false);
    }
    expect(matchesRedirectUri("http://[::1]/c", "http://[::1]:5000/c")).to.equal(true);
  });
});
