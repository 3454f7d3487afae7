import { expect } from "chai";
import { freePort } from "../../free-port.ts";
import { DnsServer } from "../../testing/dns-server.ts";
import { DoctorScene } from "../../testing/doctor-scene.ts";
import { WebSite } from "../../testing/web-site.ts";

const ALLOW_LOOPBACK = { TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8" };

describe("doctor's checks of the network", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  beforeEach(async () => {
    scene = await DoctorScene.make();
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  const answers = { silence: "ETIMEOUT", SERVFAIL: "ESERVFAIL" } as const;
  for (const [answer, code] of Object.entries(answers)) {
    it(`warns of a name server that answers with ${answer}`, async () => {
      await using server = await DnsServer.start();
      server.records.set("example.com", answer as "silence" | "SERVFAIL");
      const { findings } = await scene.report(["dns"], { TRUNKLINE_DNS_SERVERS: server.address });
      const [own] = findings;
      expect(own?.about).to.equal(`DNS ${server.address}`);
      expect(own?.level).to.equal("warning");
      expect(own?.found).to.equal(`${code} for example.com`);
      expect(own?.mend).to.include("TRUNKLINE_DNS_SERVERS");
    });
  }

  it("is content with a name server that does not know the name", async () => {
    await using server = await DnsServer.start();
    const { findings } = await scene.report(["dns"], { TRUNKLINE_DNS_SERVERS: server.address });
    expect(findings[0]?.level).to.equal("good");
  });

  it("is good where the site answers, and compares its clock", async () => {
    await using site = await WebSite.start();
    const { status, findings } = await scene.report(["egress", "--site", site.url], ALLOW_LOOPBACK);
    expect(findings.map(({ about }) => about)).to.deep.equal(["egress", "clock"]);
    expect(status).to.equal("good");
  });

  const hours = { "a minute": [60_000, "warning"], "an hour": [3_600_000, "failure"] } as const;
  for (const [name, [ms, level]] of Object.entries(hours)) {
    it(`is a ${level} where the site's clock is ahead by ${name}`, async () => {
      await using site = await WebSite.start();
      const url = site.page("/late", (_request, response) => {
        response.setHeader("Date", new Date(Date.now() + ms).toUTCString());
        response.end();
      });
      const found = await scene.finding(["egress", "--site", url], ALLOW_LOOPBACK);
      expect({ level: found.level, about: found.about }).to.deep.equal({ level, about: "clock" });
    });
  }

  it("warns where the guard or a firewall lets nothing through", async () => {
    await using site = await WebSite.start();
    const guarded = await scene.finding(["egress", "--site", site.url]);
    expect({ level: guarded.level, about: guarded.about }).to.deep.equal({
      level: "warning",
      about: "egress",
    });
    const closed = `http://127.0.0.1:${await freePort()}/`;
    expect((await scene.finding(["egress", "--site", closed], ALLOW_LOOPBACK)).level).to.equal(
      "warning",
    );
  });
});
