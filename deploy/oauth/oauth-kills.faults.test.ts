/** Kills one node or both before each step of an OAuth flow. No acknowledged change may be lost. */
import { expect } from "chai";
import type { TestClient } from "../../gateway/oauth/testing/oauth-world.ts";
import { FLOW_STEPS, OAuthFlow } from "../../scripts/testing/oauth-flow.ts";
import { OAuthNodes } from "../../scripts/testing/oauth-nodes.ts";

describe("OAuth where nodes die", function () {
  this.timeout(900_000);
  let nodes: OAuthNodes;
  let client: TestClient;
  let people = 0;
  before(async () => {
    nodes = await OAuthNodes.start();
    client = await nodes.makeClient();
  });
  after(() => nodes?.[Symbol.asyncDispose]());

  for (const [number, step] of [...FLOW_STEPS, "what was revoked is used"].entries()) {
    for (const killed of [[number % 2], [0, 1]]) {
      const dying = killed.length === 1 ? "a node dies" : "both nodes die";
      it(`loses no change when ${dying} before ${step}`, async () => {
        // One begins at each node.
        const flows: OAuthFlow[] = [];
        while (flows.length < 2) flows.push(await OAuthFlow.begin(nodes, client, people++));
        const going = (steps: readonly (typeof FLOW_STEPS)[number][]) =>
          Promise.all(flows.map((flow) => flow.go(steps)));
        await going(FLOW_STEPS.slice(0, number));
        await Promise.all(killed.map((node) => nodes.kill(node)));
        const restarting = Promise.all(killed.map((node) => nodes.restart(node)));
        await Promise.all([going(FLOW_STEPS.slice(number)), restarting]);
        for (const flow of flows) {
          expect(flow.restarts).to.equal(0);
          await flow.check();
          await flow.checkReplays();
        }
      });
    }
  }
});
