import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const code = (fails: string) => `
import { Agent } from "trunkline/agents";
let isMended = false;
export class Room extends Agent {
  constructor(context, env) { super(context, env); if ("${fails}" === "constructor" && !isMended) throw new Error("not constructed"); }
  onStart() { if ("${fails}" === "onStart" && !isMended) throw new Error("not started"); }
  onClose() { this.ctx.storage.kv.put("closed", true); }
  count() { return [[...this.getConnections()].length, this.ctx.storage.kv.get("closed") ?? false]; }
}
export class Mender extends Agent { mend() { isMended = true; } }
`;

describe("an agent that does not start", function () {
  this.timeout(60_000);
  for (const fails of ["constructor", "onStart"]) {
    it(`closes its sockets with a code and a reason, and starts when it can: ${fails}`, async () => {
      let host = await MemoryHost.start({ code: code("") });
      try {
        const socket = { id: "c", number: 1, gateway: "g" };
        await host.connect("Room/a", socket);
        host = await host.restart({ code: code(fails) });
        const refused = await host.invoke("Room/a", "count").then(String, (error: Error) => error);
        expect(refused).to.be.instanceOf(Error);
        const closes = () => host.actions.filter((action) => "close" in action);
        await until("its socket is closed", () => closes().length > 0);
        expect(closes()).to.deep.equal([
          {
            ...{ gateway: "g", to: [1] },
            close: { code: 1011, reason: "The agent did not start: its code failed" },
          },
        ]);
        // The gateway reports that the socket is closed. This report must not start the agent.
        host.lines.length = 0;
        await host.turn("Room/a", {
          ...{ type: "disconnect", connection: socket, wasClean: true },
          close: { code: 1011, reason: "" },
        });
        expect(host.lines).to.deep.equal([]);
        await host.invoke("Mender/m", "mend");
        expect(await host.invoke("Room/a", "count")).to.deep.equal([0, false]);
      } finally {
        await host.stop();
      }
    });
  }
});
