import { expect } from "chai";
import { importUrlOf } from "./import-url.ts";

describe("importUrlOf()", () => {
  const accepted: [text: string, href: string][] = [
    ["https://example.com/owner/repo.git", "https://example.com/owner/repo.git"],
    ["HTTPS://Example.COM", "https://example.com/"],
    ["https://example.com:8443/@a/b?c=d@e", "https://example.com:8443/@a/b?c=d@e"],
    ["https://example.com:443/../a/./b", "https://example.com/a/b"],
    ["https://a_b.example/x", "https://a_b.example/x"],
    ["https://xn--bcher-kva.example/x", "https://xn--bcher-kva.example/x"],
    ["https://192.0.2.1/x", "https://192.0.2.1/x"],
    ["https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443/x"],
    ["https://[::ffff:10.0.0.1]/x", "https://[::ffff:a00:1]/x"],
  ];
  for (const [text, href] of accepted) {
    it(`accepts ${text}`, () => expect(importUrlOf(text)?.href).to.equal(href));
  }

  const refused: [why: string, text: string][] = [
    ["a backslash before a user", "https://public.example\\@127.0.0.1:8443/x"],
    ["a backslash in the host", "https://public.example\\.127.0.0.1/x"],
    ["a backslash in the path", "https://example.com/a\\b"],
    ["backslashes for slashes", "https:\\\\example.com/x"],
    ["a fragment before a user", "https://example.com#@127.0.0.1/x"],
    ["a fragment", "https://example.com/x#y"],
    ["a user", "https://user@example.com/x"],
    ["a user and password", "https://user:secret@example.com/x"],
    ["an empty user", "https://@example.com/x"],
    ["an empty user and password", "https://:@example.com/x"],
    ["no slashes", "https:example.com/x"],
    ["one slash", "https:/example.com/x"],
    ["three slashes", "https:///example.com/x"],
    ["another scheme", "http://example.com/x"],
    ["a scheme of git", "ext::https://example.com/x"],
    ["no host", "https://"],
    ["a last dot", "https://example.com./x"],
    ["a last dot of an address", "https://127.0.0.1./x"],
    ["a host that begins with a hyphen", "https://-a.example/x"],
    ["a host that begins with a plus", "https://+a.example/x"],
    ["an address as one number", "https://2130706433/x"],
    ["an address in hexadecimal", "https://0x7f.0.0.1/x"],
    ["an address in octal", "https://0177.0.0.1/x"],
    ["a short address", "https://127.1/x"],
    ["an address out of range", "https://256.0.0.1/x"],
    ["a zone", "https://[fe80::1%25eth0]/x"],
    ["an open bracket", "https://[::1/x"],
    ["a percent-encoded host", "https://127%2e0.0.1/x"],
    ["an empty port", "https://example.com:/x"],
    ["a port out of range", "https://example.com:65536/x"],
    ["a port that is no number", "https://example.com:0x50/x"],
    ["a name outside ASCII", "https://b\u00fccher.example/x"],
    ["full-width digits", "https://\uff11\uff12\uff17.0.0.1/x"],
    ["a full-width dot", "https://127\u30020.0.1/x"],
    ["a soft hyphen", "https://exam\u00adple.com/x"],
    ["a tab", "https://exam\tple.com/x"],
    ["a newline", "https://example.com/x\ny"],
    ["a last newline", "https://example.com/x\n"],
    ["a control character", "https://example.com/\u007f"],
    ["a NUL", "https://example.com\0.127.0.0.1/x"],
    ["a blank before it", " https://example.com/x"],
    ["a blank in it", "https://example.com/a b"],
    ["nothing", ""],
  ];
  for (const [why, text] of refused) {
    it(`refuses ${why}: ${JSON.stringify(text)}`, () => {
      expect(importUrlOf(text)).to.equal(undefined);
    });
  }
});
