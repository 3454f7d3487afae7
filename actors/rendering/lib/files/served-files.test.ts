import { createServer } from "node:http";
import { expect } from "chai";
import { listen } from "../../../../scripts/testing/loopback-server.ts";
import { ServedFiles } from "./served-files.ts";

const file = (name: string, text: string | Buffer) => ({
  name,
  base64: Buffer.from(text).toString("base64"),
});

describe("served files", () => {
  const served = new ServedFiles(
    [
      file("index.html", "<p>"),
      file("a/index.html", "a"),
      file("p%q.css", "é"),
      file("latin.css", Buffer.from("é", "latin1")),
      file("clip.MP4", "0123456789"),
      file("unknown.zzz", "x"),
      file("constructor", "x"),
      file("empty.css", ""),
      file("x.md", "# md"),
    ],
    new Map([["x.md", "<h1>md"]]),
  );
  let server: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    const answering = createServer((request, response) =>
      served.answer(new URL(request.url ?? "", "http://x"), request, response),
    );
    server = await listen(answering, "127.0.0.1");
  });
  after(() => server.close());

  async function get(path: string, init: RequestInit = {}) {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  }
  const typeOf = async (path: string) => (await get(path)).headers.get("content-type");

  it("are found by their names as addresses write them", async () => {
    expect((await get("/")).text).to.equal("<p>");
    expect((await get("/a/?x#y")).text).to.equal("a");
    expect((await get("/p%25q.css")).text).to.equal("é");
    expect((await get("/p%q.css")).text).to.equal("é");
    for (const path of [
      "/x",
      "/a",
      "/INDEX.html",
      "/..%2findex.html",
      "/toString",
      "/empty.css/",
    ]) {
      expect((await get(path)).status, path).to.equal(404);
    }
  });

  it("have the type of their extension, and the charset UTF-8 if their bytes are UTF-8", async () => {
    expect(await typeOf("/p%25q.css")).to.equal("text/css; charset=utf-8");
    expect(await typeOf("/latin.css")).to.equal("text/css");
    expect(await typeOf("/clip.MP4")).to.equal("video/mp4");
    expect(await typeOf("/unknown.zzz")).to.equal(null);
    expect(await typeOf("/constructor")).to.equal(null);
  });

  it("of Markdown are pages for a client that accepts HTML", async () => {
    expect((await get("/x.md")).text).to.equal("# md");
    const { text, headers } = await get("/x.md", { headers: { Accept: "text/html,*/*" } });
    expect(text).to.equal("<h1>md");
    expect(headers.get("content-type")).to.equal("text/html; charset=utf-8");
  });

  it("are sent in ranges", async () => {
    const ranged = async (range: string) => {
      const { status, text, headers } = await get("/clip.MP4", { headers: { Range: range } });
      return `${status} ${headers.get("content-range")} ${text}`;
    };
    expect(await ranged("bytes=2-4")).to.equal("206 bytes 2-4/10 234");
    expect(await ranged("bytes=8-")).to.equal("206 bytes 8-9/10 89");
    expect(await ranged("bytes=8-99")).to.equal("206 bytes 8-9/10 89");
    expect(await ranged("bytes=10-")).to.equal("200 null 0123456789");
    expect(await ranged("bytes=4-2")).to.equal("200 null 0123456789");
    const empty = await get("/empty.css", { headers: { Range: "bytes=0-" } });
    expect(empty).to.include({ status: 200, text: "" });
  });

  it("accept only reads, and refuse to be embedded by other origins", async () => {
    expect((await get("/", { method: "POST" })).status).to.equal(405);
    const { headers } = await get("/", { method: "HEAD" });
    expect(headers.get("cross-origin-resource-policy")).to.equal("same-origin");
    expect(headers.get("x-frame-options")).to.equal("SAMEORIGIN");
  });
});
