import { createHash } from "node:crypto";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import { expect } from "chai";
import type { Logo } from "../../../../schemas/oauth/client-logo.ts";
import { LOGO_BYTES_MAX } from "../../../../schemas/oauth/limits.ts";
import { listen, startHttpServer } from "../../../../scripts/testing/loopback-server.ts";
import { selfSignedCertificate } from "../../../../scripts/testing/self-signed-certificate.ts";
import { taskContext } from "../../../../scripts/testing/task-context.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { LOGO_FETCHES_MAX, logoFetchWorker } from "./logo-fetch.ts";

const CLIENT = "1".repeat(32);
const { key, cert } = selfSignedCertificate("logos.test");
const guard = createEgressGuard({
  policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
  lookup: async (name) => (name === "inside.test" ? ["127.0.0.1"] : ["127.0.0.2"]),
});

const sized = (beginning: string, bytes: number) =>
  Buffer.concat([Buffer.from(beginning, "latin1")], bytes);
const PICTURES = {
  "image/png": sized("\x89PNG\r\n\x1a\n", 100),
  "image/jpeg": sized("\xff\xd8\xff\xe0", 100),
  "image/webp": sized("RIFF\0\0\0\0WEBP", 100),
};
const PNG = "\x89PNG\r\n\x1a\n";

describe("logo-fetch", function () {
  this.timeout(60_000);
  let answer: RequestListener;
  let port: number;
  let server: Awaited<ReturnType<typeof listen>>;
  beforeEach(async () => {
    const site = createServer({ key, cert }, (request, response) => answer(request, response));
    server = await listen(site, "127.0.0.2");
    port = server.port;
  });
  afterEach(() => server.close());

  async function fetchLogo(path = "/logo", { host = "logos.test", timeoutMs = 20_000 } = {}) {
    const uri = `https://${host}:${port}${path}`;
    const worker = logoFetchWorker({ guard, ca: cert, timeoutMs });
    const context = taskContext({ key: CLIENT });
    const { send } = await worker.handlers.fetch({ uri, attempt: 2 }, context);
    const [report, ...more] = typeof send === "function" ? send() : (send ?? []);
    expect(more).to.deep.equal([]);
    const { input, ...address } = report ?? {};
    expect(address).to.deep.equal({
      ...{ to: "actor", kind: "client-logo", key: CLIENT, message: "fetched" },
    });
    const { logo, ...asked } = input as { uri: string; attempt: number; logo?: Logo };
    expect(asked).to.deep.equal({ uri, attempt: 2 });
    return logo;
  }
  const answering = (bytes: Buffer | string, status = 200, headers = {}) => {
    answer = (_request, response) => response.writeHead(status, headers).end(bytes);
  };

  it("fetch() recognizes a picture by its first bytes, whatever its header says", async () => {
    for (const [type, bytes] of Object.entries(PICTURES)) {
      answering(bytes, 200, { "Content-Type": "text/html" });
      const hash = createHash("sha256").update(bytes).digest("hex");
      expect(await fetchLogo()).to.deep.equal({ type, hash, base64: bytes.toString("base64") });
    }
  });

  it("fetch() refuses documents, SVG, other formats, and any status but 200", async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`;
    for (const bytes of [svg, "<html>", "GIF89a", "", "\x89PNG", "RIFF\0\0\0\0WAVE"]) {
      answering(Buffer.from(bytes, "latin1"), 200, { "Content-Type": "image/png" });
      expect(await fetchLogo(), bytes).to.equal(undefined);
    }
    for (const status of [204, 404, 500]) {
      answering(status === 204 ? "" : PICTURES["image/png"], status);
      expect(await fetchLogo(), String(status)).to.equal(undefined);
    }
  });

  it("fetch() accepts LOGO_BYTES_MAX bytes and refuses one more", async () => {
    answering(sized(PNG, LOGO_BYTES_MAX));
    expect((await fetchLogo())?.type).to.equal("image/png");
    answering(sized(PNG, LOGO_BYTES_MAX + 1));
    expect(await fetchLogo()).to.equal(undefined);
  });

  it("fetch() follows redirects, but not to refused addresses or plain HTTP", async () => {
    await using plain = await startHttpServer((_request, response) =>
      response.end(PICTURES["image/png"]),
    );
    const targets = {
      "/there": [`https://logos.test:${port}/logo`, true],
      "/inside": [`https://inside.test:${port}/logo`, false],
      "/plain": [`http://logos.test:${plain.port}/logo`, false],
    } as const;
    answer = ({ url }, response) => {
      const [location] = targets[url as keyof typeof targets] ?? [];
      if (location === undefined) response.end(PICTURES["image/png"]);
      else response.writeHead(302, { Location: location }).end();
    };
    for (const [path, [, isTaken]] of Object.entries(targets)) {
      expect((await fetchLogo(path)) !== undefined, path).to.equal(isTaken);
    }
    expect(await fetchLogo("/logo", { host: "inside.test" })).to.equal(undefined);
  });

  it("fetch() times out on a server that does not finish", async () => {
    answer = (_request, response) => void response.writeHead(200).write(PICTURES["image/png"]);
    expect(await fetchLogo("/slow", { timeoutMs: 100 })).to.equal(undefined);
  });

  it("fetch() reports nothing while its worker stops, and a failure after the last attempt", async () => {
    const worker = logoFetchWorker({ guard, ca: cert });
    expect(worker.slots).to.deep.equal({ fetch: LOGO_FETCHES_MAX });
    const stopping = new AbortController();
    answer = () => stopping.abort(new Error("stopping"));
    const input = { uri: `https://logos.test:${port}/`, attempt: 1 };
    const context = taskContext({ key: CLIENT, signal: stopping.signal });
    const failure = await worker.handlers.fetch(input, context).catch((error: Error) => error);
    expect(failure).to.equal(stopping.signal.reason);
    const task = { id: "task", key: CLIENT };
    const reports = worker.failures.fetch?.(input, undefined as never, task) ?? [];
    expect(reports.map((report) => report.input)).to.deep.equal([input]);
  });
});
