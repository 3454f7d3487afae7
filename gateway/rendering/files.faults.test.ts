import { expect } from "chai";
import { RENDER_BODY_BYTES_MAX } from "../../schemas/limits.ts";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

const TYPE = { "Content-Type": "multipart/form-data; boundary=b" };
const HEAD = '--b\r\nContent-Disposition: form-data; name="files"; filename="index.html"\r\n\r\n';
const TAIL = "\r\n--b--\r\n";

describe("large and hostile forms", function () {
  this.timeout(600_000);
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await testGateway();
  });
  afterEach(() => gateway.stop());

  const post = (body: string | ReadableStream) =>
    gateway.ask(`/v4/accounts/${gateway.accountId}/browser-rendering/pdf`, {
      method: "POST",
      headers: TYPE,
      body,
    });

  it("have at most as many bytes as a JSON body, announced or not", async () => {
    const whole = (bytes: number) => HEAD + "x".repeat(bytes - HEAD.length - TAIL.length) + TAIL;
    expect((await post(whole(RENDER_BODY_BYTES_MAX))).status).to.equal(200);
    expect((await post(whole(RENDER_BODY_BYTES_MAX + 1))).status).to.equal(413);
    const piece = Buffer.from("x".repeat(1_000_000));
    const endless = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from(HEAD)),
      pull: (controller) => controller.enqueue(piece),
    });
    expect((await post(endless)).status).to.equal(413);
  });

  it("of the smallest parts, endless headers or endless preambles are refused", async () => {
    const part = '--b\r\nContent-Disposition: form-data; name="files"; filename="x"\r\n\r\n\r\n';
    const parts = part.repeat(Math.floor(20_000_000 / part.length)) + TAIL;
    const header = `--b\r\nX: ${"x".repeat(20_000_000)}`;
    const headers = `--b\r\n${"X: y\r\n".repeat(3_000_000)}\r\n\r\nx${TAIL}`;
    const name = HEAD.replace("index.html", "x".repeat(20_000_000));
    const boundaries = "--b\r\n".repeat(4_000_000);
    for (const body of [
      parts,
      header,
      headers,
      `${name}x${TAIL}`,
      boundaries,
      "\r\n--".repeat(5_000_000),
    ]) {
      const { status, json } = await post(body);
      expect(status, body.slice(0, 100)).to.equal(400);
      expect(json?.errors).to.have.length(1);
    }
    expect(gateway.printer.tasks).to.equal(0);
    expect(gateway.logs.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
    expect((await post(`${HEAD}x${TAIL}`)).status).to.equal(200);
  });
});
