import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { ChildProgram } from "./child-program.ts";
import { endAll, RUN_VARIABLE } from "./leftovers.ts";

const THREADS = 4;
/** Prints the port it listens on when all threads have filled their memory, which the kernel needs time to free. */
const LISTENING = `
  const { Worker } = require("node:worker_threads");
  const thread = \`
    const filled = Buffer.alloc(50e6, 1);
    require("node:worker_threads").parentPort.on("message", () => filled).postMessage("filled");\`;
  let filled = 0;
  for (let n = 0; n < ${THREADS}; n++) {
    new Worker(thread, { eval: true }).once("message", () => ++filled === ${THREADS} && listen());
  }
  function listen() {
    const server = require("node:net").createServer();
    server.listen(0, "127.0.0.1", () => console.log("port", server.address().port));
  }`;

describe("endAll", function () {
  this.timeout(120_000);

  it("waits until the last thread of a killed process has closed its sockets", async () => {
    const mark = `${process.pid}-ends/`;
    // In about half of the cases, the first thread has ended long before the last one.
    for (let run = 0; run < 6; run++) {
      const command = [process.execPath, "-e", LISTENING];
      await using program = new ChildProgram(command, { [RUN_VARIABLE]: `${mark}${run}` });
      const port = Number((await program.line("port ")).slice("port ".length));
      await endAll(mark);
      const connected = once(connect(port, "127.0.0.1"), "connect");
      const error = await connected.catch(({ code }) => code);
      expect(error).to.equal("ECONNREFUSED");
    }
  });
});
