import { expect } from "chai";
import { APP_REQUEST_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { BODIES_BYTES_MAX } from "../../schemas/limits.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";

/** Reads the whole body, and gives an answer that never ends. */
const CODE = `
export default {
  async fetch(request) {
    await request.arrayBuffer();
    return new Response(new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("begun")),
    }));
  },
};
`;

describe("bodies of requests to apps", function () {
  this.timeout(600_000);

  it("are no longer counted while their responses continue", async () => {
    await using platform = await AppPlatform.start();
    const { body: deployed } = await platform.deploy("takes", CODE);
    expect(deployed.errors).to.deep.equal([]);
    const url = `${platform.url}/apps/${platform.accountId}/takes/`;
    const body = Buffer.alloc(APP_REQUEST_BYTES_MAX);
    const fit = Math.floor(BODIES_BYTES_MAX / APP_REQUEST_BYTES_MAX);
    const leaving = new AbortController();
    const open: Response[] = [];
    for (let times = 0; times < fit + 2; times++) {
      open.push(await fetch(url, { method: "POST", body, signal: leaving.signal }));
    }
    expect(open.map(({ status }) => status)).to.deep.equal(open.map(() => 200));
    leaving.abort();
  });
});
