/** Tests a query of an agent's tables that never ends. */
import { expect } from "chai";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Notes extends Agent {
  initialState = { n: 0 };
  onRequest() { this.setState({ n: this.state.n + 1 }); return new Response(String(this.state.n)); }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;
const ENDLESS =
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

describe("agents by REST", function () {
  this.timeout(300_000);

  it("end with their process at an endless query, and keep their data", async () => {
    await using platform = await AppPlatform.start();
    const agents = [{ binding: "Notes", class_name: "Notes" }];
    expect((await platform.deploy("diary", BUNDLE, { agents })).status).to.equal(200);
    expect((await platform.ask("diary", "/agents/notes/a")).text).to.equal("1");
    const path = "/apps/diary/agents/Notes/a";
    const asked = await platform.rest("POST", `${path}/query`, { sql: ENDLESS });
    expect(asked.status, JSON.stringify(asked.body)).to.be.within(400, 599);
    const isBack = async () => {
      const { status, text } = await platform.ask("diary", "/agents/notes/a");
      return status === 200 && Number(text) >= 2;
    };
    await until("it answers again", isBack, 120_000);
    const shown = await platform.rest("GET", path);
    expect(shown.body.result.state.n).to.be.at.least(2);
  });
});
