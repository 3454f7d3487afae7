/**
 * The program with two small roles instead of the real ones, for tests of start and stop. The role `gateway` responds
 * to HTTP after TEST_ANSWER_MS. The role `actors` uses the bus until the end of its stop. With TEST_STUCK, `actors`
 * never stops.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { readBusAddress } from "../../actors/runtime/bus/bus-address.ts";
import { type RoleStart, runProgram } from "../program.ts";

const { TEST_ANSWER_MS = "0", TEST_STUCK } = process.env;

const actors: RoleStart = {
  role: "actors",
  async start({ access, logger }) {
    const bus = await connect({
      ...readBusAddress(access("actors").url),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
    });
    void reportReturns(bus); // Ends with the connection.
    return {
      name: "actors",
      async stop() {
        if (TEST_STUCK !== undefined) await new Promise(() => {});
        await bus.flush();
        logger.info({}, "bus still there");
        await bus.close();
      },
    };
  },
};

const gateway: RoleStart = {
  role: "gateway",
  async start({ config }) {
    const server = createServer((_request, response) => {
      console.log("request came");
      response.setHeader("Connection", "close");
      setTimeout(() => response.end("answered"), Number(TEST_ANSWER_MS));
    });
    server.listen(config.port, config.host);
    await once(server, "listening").catch((error) => {
      throw new Error(`Cannot listen on ${config.host}:${config.port}: ${error.code}`);
    });
    return {
      name: "gateway",
      leave: () => console.log("leaving"),
      async stop() {
        const closed = once(server, "close");
        server.close();
        await closed;
      },
    };
  },
};

const onReady = () => console.log("ready");
process.exit(await runProgram({ environment: process.env, roles: [actors, gateway], onReady }));

async function reportReturns(bus: NatsConnection): Promise<void> {
  let returns = 0;
  for await (const { type } of bus.status()) {
    if (type === "reconnect") console.log(`bus came back ${++returns}`);
  }
}
