import { expect } from "chai";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { CHARSET_PRESCAN_BYTES, CHARSET_SAMPLE_BYTES, decodeBody } from "./decode-body.ts";

describe("decodeBody", () => {
  it("decodeBody() prefers a byte order mark to the header and the page", () => {
    const utf16 = Uint8Array.of(0xfe, 0xff, 0x00, 0x41, 0x20, 0xac);
    expect(decodeBody(utf16, "text/html; charset=utf-8")).to.deep.equal({
      text: "A€",
      charset: "utf-16be",
      by: "bom",
    });
    expect(decodeBody(Uint8Array.of(0xff, 0xfe, 0x41, 0x00)).text).to.equal("A");
    expect(decodeBody(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41)).text).to.equal("A");
  });

  it("decodeBody() prefers the header to the page", () => {
    const page = bytes("<meta charset=utf-8>", 0xe9, 0x80);
    for (const header of [
      "text/html; charset=windows-1252",
      'text/html;CHARSET = "latin1" ; x=y',
    ]) {
      const { text, charset, by } = decodeBody(page, header);
      expect([text.slice(-2), charset, by]).to.deep.equal(["é€", "windows-1252", "header"]);
    }
  });

  it("decodeBody() reads the charset that the page declares", () => {
    const cases: [html: string, charset: string][] = [
      ["<META CHARSET='Shift_JIS'>", "shift_jis"],
      ['<meta http-equiv="Content-Type" content="text/html; charset=gb2312">', "gbk"],
      ['<?xml version="1.0" encoding="iso-8859-2"?><html>', "iso-8859-2"],
      ["<!-- <meta charset=big5> --><meta charset=euc-kr>", "euc-kr"],
      ["<meta charset=utf-16>", "utf-8"],
    ];
    for (const [html, charset] of cases) {
      expect(decodeBody(bytes(html)), html).to.include({ charset, by: "meta" });
    }
    expect(
      decodeBody(Uint8Array.from([...bytes("<meta charset=sjis>"), 0x93, 0xfa])).text,
    ).to.match(/日$/);
  });

  it("decodeBody() searches CHARSET_PRESCAN_BYTES for the declared charset", () => {
    const meta = "<meta charset=koi8-r>";
    const page = (offset: number) => decodeBody(bytes(" ".repeat(offset) + meta)).by;
    expect(page(CHARSET_PRESCAN_BYTES - meta.length)).to.equal("meta");
    expect(page(CHARSET_PRESCAN_BYTES)).to.equal("detection");
  });

  it("decodeBody() detects the charset from CHARSET_SAMPLE_BYTES", () => {
    // No UTF-8, where it is seen.
    const charset = (offset: number) => decodeBody(bytes("a".repeat(offset), 0x80, 0x41)).charset;
    expect(charset(CHARSET_SAMPLE_BYTES - 1)).not.to.equal("utf-8");
    expect(charset(CHARSET_SAMPLE_BYTES)).to.equal("utf-8");
  });

  it("decodeBody() ignores unknown labels, and detects the charset", () => {
    const russian =
      "Эта страница написана так, чтобы по частым буквам можно было узнать и язык, и кодировку текста";
    expect(decodeBody(bytes(russian), "text/html; charset=foo")).to.deep.equal({
      text: russian,
      charset: "utf-8",
      by: "detection",
    });
    const windows = Uint8Array.from(russian, (letter) => {
      const code = letter.codePointAt(0) ?? 0;
      return code < 0x80 ? code : code - 0x410 + 0xc0;
    });
    expect(decodeBody(windows)).to.deep.equal({
      text: russian,
      charset: "windows-1251",
      by: "detection",
    });
    expect(decodeBody(Uint8Array.of(0x63, 0x61, 0x66, 0xe9)).text).to.equal("café");
  });

  it("decodeBody() accepts a character that the sample cuts in two", () => {
    const text = `a${"é".repeat(40_000)}`;
    expect(decodeBody(bytes(text))).to.deep.equal({ text, charset: "utf-8", by: "detection" });
  });

  it("decodeBody() never throws, and takes a bounded time", () => {
    const noise = Uint8Array.from(
      { length: 10_000_000 },
      (_, index) => (index * 7919 + (index >> 8)) % 256,
    );
    const headers = [
      undefined,
      "",
      "charset=",
      "text/html; charset=replacement",
      "charset=\u0000",
      "charset=iso-2022-kr",
    ];
    const takenMs = processorTime();
    for (const header of headers)
      expect(decodeBody(noise, header).text.length).to.be.above(1_000_000);
    for (const label of ["utf-16le", "iso-2022-jp", "gb18030", "x-user-defined", "utf-7"]) {
      expect(decodeBody(noise.subarray(0, 99_999), `charset=${label}`).text).to.be.a("string");
    }
    for (const part of ["<meta ", "<!--", "<meta charset", "\u0000"]) {
      expect(decodeBody(new TextEncoder().encode(part.repeat(1_000_000))).by).to.equal("detection");
    }
    expect(decodeBody(new Uint8Array()).text).to.equal("");
    expect(takenMs()).to.be.below(5_000);
  }).timeout(120_000);
});

function bytes(text: string, ...more: number[]): Uint8Array {
  return Uint8Array.from([...new TextEncoder().encode(text), ...more]);
}
