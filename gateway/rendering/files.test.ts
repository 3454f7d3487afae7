import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { FILES_MAX } from "../../schemas/rendering/limits.ts";
import { shellBlocksOf, WORK_FOLDER } from "../../scripts/testing/guide.ts";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

type Named = [name: string, content: string | Blob];

/** The form that a browser makes. */
function formOf(files: readonly Named[], options?: string | Blob): FormData {
  const form = new FormData();
  if (options !== undefined) form.append("options", options);
  for (const [name, content] of files) form.append("files", new Blob([content]), name);
  return form;
}

describe("forms with files", () => {
  let gateway: TestGateway;
  let pdf: string;
  beforeEach(async () => {
    gateway = await testGateway();
    pdf = `/v4/accounts/${gateway.accountId}/browser-rendering/pdf`;
  });
  afterEach(() => gateway.stop());

  async function send(body: FormData | string, headers: Record<string, string> = {}, path = pdf) {
    const response = await fetch(gateway.url + path, {
      method: "POST",
      headers: { Authorization: `Bearer ${gateway.token}`, ...headers },
      body,
    });
    const text = await response.text();
    const errors = text.startsWith("{") ? JSON.parse(text).errors : [];
    const [fault = {}] = errors as { message?: string; source?: { pointer: string } }[];
    return { status: response.status, text, pointer: fault.source?.pointer, ...fault };
  }
  /** Sends the form, and returns the task input that the worker received, with the files as text. */
  async function received(body: FormData, path = pdf) {
    const { status, text } = await send(body, {}, path);
    expect(status, text).to.equal(200);
    const { files = [], ...options } = JSON.parse(text.slice(text.indexOf("\n")));
    const named = (files as { name: string; base64: string }[]).map(({ name, base64 }) => [
      name,
      Buffer.from(base64, "base64").toString(),
    ]);
    return { options, files: named };
  }

  it("bring their files and options to the worker, from a browser's FormData", async () => {
    const files: Named[] = [
      ["index.html", "<p>ü"],
      ['assets/é "x" %20.css', ""],
      ["deep/er/x.js", "1"],
    ];
    const options = JSON.stringify({ pdfOptions: { landscape: true } });
    for (const given of [options, new Blob([options], { type: "application/json" })]) {
      const got = await received(formOf(files, given));
      // Browsers and fetch write quotes in names as %22 (WHATWG HTML, multipart/form-data encoding algorithm).
      const named = files.map(([name, text]) => [name.replaceAll('"', "%22"), text]);
      expect(got.files).to.deep.equal(named);
      expect(got.options.pdfOptions).to.include({ landscape: true });
    }
    expect((await received(formOf(files))).files).to.have.length(3);
    const options2 = JSON.stringify({ html: "x" });
    expect((await received(formOf([], options2))).options).to.deep.include({ html: "x" });
  });

  it("come from curl -F", async function () {
    if (spawnSync("curl", ["--version"]).error) this.skip();
    const folder = mkdtempSync(join(tmpdir(), "trunkline-form-"));
    try {
      mkdirSync(join(folder, "assets"));
      writeFileSync(join(folder, "index.html"), "<p>hello");
      writeFileSync(join(folder, "assets", "x.css"), "p{}");
      writeFileSync(join(folder, "options.json"), '{"pdfOptions":{"scale":2}}');
      const { stdout } = await promisify(execFile)(
        "curl",
        [
          ...["-sS", gateway.url + pdf, "-H", `Authorization: Bearer ${gateway.token}`],
          ...["-F", "options=<options.json", "-F", "files=@index.html"],
          ...["-F", "files=@assets/x.css;filename=assets/x.css"],
        ],
        { cwd: folder },
      );
      const { files, pdfOptions } = JSON.parse(stdout.slice(stdout.indexOf("\n")));
      const names = files.map(({ name }: { name: string }) => name);
      expect(names).to.deep.equal(["index.html", "assets/x.css"]);
      expect(pdfOptions).to.include({ scale: 2 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("are taken by every call of a page, and by no other route", async () => {
    const body = () => formOf([["index.html", "x"]]);
    const screenshot = pdf.replace(/pdf$/, "screenshot");
    for (const path of [screenshot, pdf.replace(/pdf$/, "content")]) {
      expect((await send(body(), {}, path)).status, path).to.equal(200);
    }
    const tokens = `/v4/accounts/${gateway.accountId}/tokens`;
    expect(await send(body(), {}, tokens)).to.include({ status: 415 });
  });

  it("get errors that name the field", async () => {
    const index: Named = ["index.html", "x"];
    const twice = formOf([index], "{}");
    twice.append("options", "{}");
    const unknown = formOf([index]);
    unknown.append("file", new Blob(["x"]), "x.css");
    const nameless = formOf([index]);
    nameless.append("files", "x");
    const cases: [FormData, string, string][] = [
      [twice, "/options", "one part of this name"],
      [unknown, "/file", "a part named options or files"],
      [nameless, "/files/1/name", "a file with a name"],
      [formOf([index], "{,}"), "/options", "line 1, column 2"],
      [formOf([index], "[]"), "/options", "a JSON object"],
      [formOf([index], '{"files": []}'), "/options/files", "files as parts of the form"],
      [formOf([index], '{"pdfOptions": {"scale": 9}}'), "/pdfOptions/scale", "Expected"],
      [formOf([["a.html", "x"]]), "/files", "found a.html"],
      [formOf([index, ["../x", "x"]]), "/files/1/name", "without .."],
      [formOf([index, ["/etc/x", "x"]]), "/files/1/name", "absolute"],
      [formOf([index, index]), "/files/1/name", "index.html occurs twice"],
      [formOf([index], '{"html": "x"}'), "/url", "exactly one of"],
      [formOf([]), "/url", "exactly one of"],
    ];
    for (const [form, pointer, message] of cases) {
      const refused = await send(form);
      expect(refused.status, message).to.equal(400);
      expect(refused.pointer, refused.text).to.equal(pointer);
      expect(refused.message).to.contain(message);
    }
  });

  it("have at most FILES_MAX files", async () => {
    const many = (count: number) =>
      formOf(
        Array.from({ length: count }, (_, at): Named => [at ? `${at}` : "index.html", ""]),
        "{}",
      );
    expect((await send(many(FILES_MAX))).status).to.equal(200);
    for (const count of [FILES_MAX + 1, FILES_MAX + 500]) {
      const refused = await send(many(count));
      expect(refused).to.include({ status: 400, pointer: "/files" });
      expect(refused.message).to.contain(`at most ${FILES_MAX} files`);
    }
  });

  it("that are incomplete or invalid are refused", async () => {
    const type = "multipart/form-data; boundary=b";
    const part = '--b\r\nContent-Disposition: form-data; name="options"\r\n\r\n{"html":"x"}';
    for (const [body, sent] of [
      ["", type],
      ["x", type],
      [part, type],
      [`${part}\r\n--c--\r\n`, type],
      [`${part}\r\n--b--\r\n`, "multipart/form-data"],
      [`${part}\r\n--b--\r\n`, "multipart/form-data; boundary="],
    ] as const) {
      const refused = await send(body, { "Content-Type": sent });
      expect([400, 415], `${sent} ${body}`).to.include(refused.status);
    }
    expect((await send(`${part}\r\n--b--\r\n`, { "Content-Type": type })).status).to.equal(200);
  });

  it("that are interrupted log no fault, and release their bytes", async () => {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.write(
      `POST ${pdf} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.token}\r\n` +
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
    );
    await once(socket, "data");
    socket.write(
      '--b\r\nContent-Disposition: form-data; name="files"; filename="index.html"\r\n\r\nabc',
    );
    const logged = gateway.logs.length;
    socket.destroy();
    while (gateway.logs.length === logged) await new Promise(setImmediate);
    expect(gateway.logs.slice(logged)).to.have.length(1);
    expect(gateway.logs.at(-1)).to.include({ msg: "request", finished: false });
    expect(gateway.printer.tasks).to.equal(0);
  });

  it("are sent by the commands of the guide, word for word", async function () {
    if (spawnSync("curl", ["--version"]).error) this.skip();
    const folder = mkdtempSync(join(tmpdir(), "trunkline-form-"));
    try {
      mkdirSync(join(folder, "data"));
      const { url, accountId: account_id, token: api_token } = gateway;
      const credentials = JSON.stringify({ base_url: `${url}/v4`, account_id, api_token });
      writeFileSync(join(folder, "data", "credentials.json"), credentials);
      const commands = WORK_FOLDER + shellBlocksOf("docs/guides/pdf.md").join("");
      const env = { PATH: process.env.PATH, HOME: folder };
      const shell = promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands], {
        cwd: folder,
        env,
      });
      await shell;
      const printed = (name: string) => {
        const text = readFileSync(join(folder, "work", name), "utf8");
        return JSON.parse(text.slice(text.indexOf("\n")));
      };
      const names = ({ files }: { files: { name: string }[] }) => files.map(({ name }) => name);
      expect(printed("hello.pdf").html).to.contain("Hello from Trunkline");
      const invoice = printed("invoice.pdf");
      expect(names(invoice)).to.deep.equal(["index.html", "assets/style.css"]);
      expect(invoice.pdfOptions.metadata).to.deep.equal({ subject: "Desk lamp" });
      const all = printed("all.pdf");
      expect(names(all)).to.deep.equal(["index.html", "assets/style.css", "notes.md"]);
      expect(all.sources).to.have.length(3);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
