import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { listen } from "../../scripts/testing/loopback-server.ts";
import { until } from "../../scripts/testing/until.ts";

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Room extends Agent { onRequest() { return new Response("in"); } }
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("none") };
`;

interface Span {
  traceId: string;
  name: string;
  attributes: unknown;
}

describe("traces of apps", function () {
  this.timeout(300_000);

  it("continue from the caller over the app's entry to its agent, without paths of the app", async () => {
    const spans: Span[] = [];
    const receiver = await listen(
      createServer(async (incoming, response) => {
        for (const { scopeSpans } of JSON.parse(await text(incoming)).resourceSpans) {
          for (const one of scopeSpans) spans.push(...one.spans);
        }
        response.setHeader("Content-Type", "application/json").end("{}");
      }),
      "127.0.0.1",
    );
    try {
      const endpoint = `http://127.0.0.1:${receiver.port}`;
      await using platform = await AppPlatform.start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
      const agents = [{ binding: "Room", class_name: "Room" }];
      expect((await platform.deploy("rooms", BUNDLE, { agents })).status).to.equal(200);
      const traceId = "0af7651916cd43dd8448eb211c80319c";
      const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
      const answer = await platform.ask("rooms", "/agents/room/private-name?token=x", { headers });
      expect(answer.text).to.equal("in");
      const ours = () => spans.filter((span) => span.traceId === traceId);
      const names = () => new Set(ours().map(({ name }) => name));
      await until("they have come", () => names().has("app-entry request"), 30_000);
      await until("that of the gateway too", () => names().has("GET"), 30_000);
      expect(JSON.stringify(ours())).to.not.match(/private-name|token=x/);
    } finally {
      await receiver.close();
    }
  });
});
