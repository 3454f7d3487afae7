/**
 * Kills nodes between the steps of OAuth flows and during steps. Each flow must continue, or end with an error after
 * which the client can start again.
 */
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { FLOW_STEPS, OAuthFlow } from "../../scripts/testing/oauth-flow.ts";
import { OAuthNodes } from "../../scripts/testing/oauth-nodes.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";

const FLOWS = 6;
/** Maximum time from the start of a step to the kill. A step takes about 20 ms. */
const KILL_WITHIN_MS = 40;

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("OAuth under faults", function () {
  this.timeout(600_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  it("loses no grant when nodes are killed between and in all steps from authorize to revoke", async () => {
    await using nodes = await OAuthNodes.start();
    const client = await nodes.makeClient();
    const random = new SeededRandom(seed);
    const flows: OAuthFlow[] = [];
    while (flows.length < FLOWS) flows.push(await OAuthFlow.begin(nodes, client, flows.length));
    for (const step of FLOW_STEPS) {
      const killed = random.chance(0.2) ? [0, 1] : [random.integer(0, 1)];
      const isBetween = random.chance(0.3);
      const going = () => Promise.all(flows.map((flow) => flow[step]()));
      const kill = async () => {
        if (!isBetween) await clock.wait(random.integer(0, KILL_WITHIN_MS));
        await Promise.all(killed.map((node) => nodes.kill(node)));
      };
      const startedAt = performance.now();
      if (isBetween) {
        await kill();
        await Promise.all([going(), ...killed.map((node) => nodes.restart(node))]);
      } else {
        await Promise.all([
          going(),
          kill().then(() => Promise.all(killed.map((node) => nodes.restart(node)))),
        ]);
      }
      const ms = Math.round(performance.now() - startedAt);
      const when = isBetween ? "before" : "during";
      console.log(`      ${killed.length} killed ${when} ${step}: all went on after ${ms} ms`);
      // Acknowledged changes survive every kill.
      for (const flow of flows) await flow.check();
    }
    const count = (of: (flow: OAuthFlow) => number) =>
      flows.reduce((sum, flow) => sum + of(flow), 0);
    console.log(
      `      ${count((flow) => flow.again)} requests made again, ${count((flow) => flow.restarts)} flows begun anew`,
    );
    for (const flow of flows) await flow.checkReplays();
  });
});
