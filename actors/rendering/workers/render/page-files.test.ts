import { expect } from "chai";
import { ContentRequest } from "../../../../schemas/rendering/http/page-calls.ts";
import { capture, look } from "../../../../scripts/testing/camera.ts";
import { startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { openPool, print } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { FILES_HOST } from "../../lib/files/served-files.ts";
import { content } from "./outputs/content.ts";
import { renderPage } from "./render-page.ts";

const file = (name: string, content: string | Buffer) => ({
  name,
  base64: Buffer.from(content).toString("base64"),
});

describe("files of a page", function () {
  this.timeout(60_000);
  const pool = openPool();
  let site: WebSite;
  before(async () => {
    [site] = await Promise.all([WebSite.start(), pool.start()]);
  });
  after(() => Promise.all([pool.close(), site[Symbol.asyncDispose]()]));

  it("show the page with its styles, scripts, images and data, below folders too", async () => {
    const pixel =
      "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6BAAAAC0lEQVR4nGNgwAUAABUAAcfFGZkAAAAASUVORK5CYII=";
    const index = `<meta charset=utf-8><link rel=stylesheet href="assets/st%20yle.css">
      <img id=i src=/img/%C3%A9.png><script type=module>
        import { word } from "./deep/er/word.mjs";
        const { n } = await (await fetch("data.json?x=1")).json();
        await i.decode();
        const missing = (await fetch("nothing.json")).status;
        document.title = [word, n, i.naturalHeight, missing, isSecureContext].join();
      </script><p>x`;
    const files = [
      file("index.html", index),
      file("assets/st yle.css", '@import "more.css"; p::after { content: "ü" }'),
      file("assets/more.css", 'p::before { content: "more " }'),
      file("img/e\u0301.png", Buffer.from(pixel, "base64")),
      file("deep/er/word.mjs", 'export * from "../word.js"'),
      file("deep/word.js", 'export const word = "wörd"'),
      file("data.json", '{"n": 7}'),
    ];
    const pdf = await print(pool, { files });
    expect(pdf.title).to.equal("wörd,7,3,404,true");
    expect(pdf.texts.join()).to.equal("more xü");
    expect(pdf.faults).to.equal("");
  });

  it("are read in the encoding that they name, or in UTF-8", async () => {
    const latin1 = Buffer.from("<meta charset=latin1><title>\u00fc</title>", "latin1");
    expect((await print(pool, { files: [file("index.html", latin1)] })).title).to.equal("ü");
    expect((await print(pool, { files: [file("index.html", "<title>ü</title>")] })).title).to.equal(
      "ü",
    );
  });

  it("belong to no site: they have no status, and the rules of the page apply to them", async () => {
    const files = [
      file("index.html", "<title>x</title><script src=x.js></script>"),
      file("x.js", "document.title = 'ran'"),
    ];
    const task = { account: "a", action: "read" as const };
    const limits = { output: content, signal: new AbortController().signal, clock: systemClock };
    const parameters = ContentRequest.parse({ files });
    const { status, answer } = await renderPage(pool, { ...task, parameters }, limits);
    expect(status).to.equal(undefined);
    expect(answer.meta).to.deep.equal({ status: null, title: "ran" });
    const off = { files, rejectResourceTypes: ["script" as const] };
    expect((await print(pool, off)).title).to.equal("x");
    expect((await print(pool, { files, setJavaScriptEnabled: false })).title).to.equal("x");
  });

  it("are visible only to their own page, and not to sites in it", async () => {
    const url = `http://${FILES_HOST}/secret.js`;
    const spy = site.page(
      "/spy",
      `<script>addEventListener("message", async ({ source, origin }) => {
        const tried = [];
        tried.push(await fetch("${url}").then(() => "read", () => "refused"));
        tried.push(await fetch("${url}", { mode: "no-cors" }).then(() => "read", () => "refused"));
        const script = document.createElement("script");
        script.src = "${url}";
        tried.push(await new Promise((done) => {
          script.onload = () => done("ran");
          script.onerror = () => done("refused");
          document.head.append(script);
        }));
        source.postMessage(tried.join(), origin);
      })</script>`,
    );
    const index = `<iframe src="${spy}"></iframe><script src=secret.js></script><script>
      addEventListener("message", ({ data }) => { document.title = secret + ": " + data });
      addEventListener("load", () => frames[0].postMessage("go", "*"));
    </script>`;
    const files = [file("index.html", index), file("secret.js", "var secret = 'mine'")];
    const shown = await print(pool, {
      files,
      waitForFunction: { function: "document.title !== ''", timeout: 20_000 },
    });
    expect(shown.title).to.equal("mine: refused,refused,refused");
    for (const request of [{ url }, { url: `http://${FILES_HOST}/` }]) {
      const { code } = await refusalOf(print(pool, request));
      expect(["address_refused", "name_not_resolved"]).to.include(code);
    }
    const other = {
      files: [file("index.html", `<script src="${url}" onerror="document.title='gone'"></script>`)],
    };
    expect((await print(pool, other)).title).to.equal("gone");
  });

  it("do not open what the egress guard closes", async () => {
    await using inside = await startHttpServer(
      (_request, response) => response.end("x"),
      "127.0.0.1",
    );
    const open = site.page("/open", "x");
    const urls = [open, `http://127.0.0.1:${inside.port}/`, "file:///etc/passwd"];
    const index = `<script>
      const tried = ${JSON.stringify(urls)}
        .map((url) => fetch(url, { mode: "no-cors" }).then(() => "sent", () => "failed"));
      Promise.all(tried).then((all) => { document.title = all.join() });
    </script>`;
    const request = {
      files: [file("index.html", index)],
      waitForFunction: { function: "document.title !== ''", timeout: 20_000 },
    };
    expect((await print(pool, request)).title).to.match(/^sent,.*,failed$/);
    expect(inside.accepted()).to.equal(0);
  });

  describe("index.md", () => {
    const text = `---
title: "Of front matter"
author: Ada
keywords: [a, b]
---
# Head *ing*

[to it](#head-ing)

| a | b |
| - | -:|
| 1 | 2 |

<b>raw</b> ![](x.png) \`a < b\`

- [x] done
`;

    it("becomes a page, with title and properties of its front matter", async () => {
      const pdf = await print(pool, { files: [file("index.md", text)] });
      expect(pdf.title).to.equal("Of front matter");
      expect(pdf.has("/Author (Ada)")).to.equal(true);
      expect(pdf.has("/Keywords (a, b)")).to.equal(true);
      expect(pdf.texts.join("")).to.match(/^Head ingto itab12raw +a < b ?done$/);
      expect(pdf.has("/Dest /head-ing")).to.equal(true);
      const untitled = { files: [file("index.md", "\uFEFFtext\n\n## The *first* &amp;\n")] };
      expect((await print(pool, untitled)).title).to.equal("The first &");
    });

    it("is the file itself for scripts, and second to index.html", async () => {
      const index = `<script>
        fetch("index.md").then((r) => r.text()).then((md) => { document.title = md })
      </script>`;
      const files = [file("index.md", "# raw"), file("index.html", index)];
      const request = { files, waitForFunction: { function: "document.title !== ''" } };
      expect((await print(pool, request)).title).to.equal("# raw");
    });
  });

  it("are captured as they are printed", async () => {
    const files = [
      file("index.html", "<link rel=stylesheet href=x.css><body>"),
      file("x.css", "body { background: rgb(1, 2, 3) }"),
    ];
    const { bytes, status } = await capture(pool, { files, viewport: { width: 40, height: 40 } });
    expect(status).to.equal(undefined);
    expect((await look(pool, bytes, [9, 9])).colors).to.deep.equal([[1, 2, 3, 255]]);
  });
});
