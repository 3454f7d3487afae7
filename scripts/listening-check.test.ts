import { once } from "node:events";
import { createServer } from "node:net";
import { expect } from "chai";
import { freePort } from "./free-port.ts";
import { checkListening } from "./listening-check.ts";

describe("listening check", () => {
  it("checkListening() leaves a free port free", async () => {
    const at = { host: "127.0.0.1", port: await freePort() };
    await checkListening(at);
    await checkListening(at);
  });

  it("checkListening() reports a port in use, and names the setting that changes it", async () => {
    const port = await freePort();
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    expect(await problem("127.0.0.1", port)).to.equal(
      `Cannot listen on 127.0.0.1:${port}: the port is in use, TRUNKLINE_PORT chooses another`,
    );
    other.close();
  });

  // 192.0.2.1 is from a range for documentation: no machine has this address.
  for (const host of ["no-such-host.invalid", "192.0.2.1"]) {
    it(`checkListening() names the setting if this machine does not have the address ${host}`, async () => {
      expect(await problem(host, await freePort())).to.equal(
        `TRUNKLINE_HOST: expected a name or an address of this machine, found "${host}"`,
      );
    });
  }

  const problem = (host: string, port: number) =>
    checkListening({ host, port }).then(
      () => "none",
      (error: Error) => error.message,
    );
});
