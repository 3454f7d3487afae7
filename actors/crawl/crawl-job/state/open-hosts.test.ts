import { expect } from "chai";
import { CRAWL_HOSTS_MAX } from "../../../../schemas/crawl/limits.ts";
import { checkJob, fetched, HOST, JobWorld } from "../../../../scripts/testing/job-world.ts";

describe("hosts of a crawl job", () => {
  /** A job with a page at each of these hosts, and the messages to their sites. */
  const wide = (hosts: number, hostsMax?: number) => {
    const options = { includeExternalLinks: true };
    const world = new JobWorld();
    world.start({ source: "links", limit: 10_000, options }, { hostsMax });
    const wanted = new Map<string, number>();
    const asked: string[] = [];
    const hear = () => {
      for (const { message, key, input } of world.take("site")) {
        if (message !== "want") continue;
        const { wants, tell } = input as { wants: number; tell: unknown[] };
        if (wants === 0) wanted.delete(key);
        else wanted.set(key, wants);
        if (tell.length > 0) asked.push(key);
      }
    };
    world.learn();
    world.visit(fetched(Array.from({ length: hosts }, (_, n) => `https://h${n}.example/`)));
    world.settleBacklog();
    hear();
    wanted.delete(HOST);
    return { world, wanted, asked, hear };
  };
  const visit = (world: JobWorld, host: string, links: string[] = []) => {
    world.visit(fetched(links), host);
    world.settleBacklog();
  };

  it("CRAWL_HOSTS_MAX hosts are open at once, and the next opens when one is done, in the order of discovery", () => {
    const { world, wanted, asked, hear } = wide(CRAWL_HOSTS_MAX + 3);
    expect(wanted.size).to.equal(CRAWL_HOSTS_MAX);
    expect([...wanted.keys()].at(-1)).to.equal(`h${CRAWL_HOSTS_MAX - 1}.example`);
    checkJob(world);
    visit(world, "h7.example");
    hear();
    expect(asked.at(-1)).to.equal(`h${CRAWL_HOSTS_MAX}.example`);
    // More pages are found at an open host, a waiting host and a finished host.
    const late = `h${CRAWL_HOSTS_MAX + 2}.example`;
    const links = ["https://h9.example/b", `https://${late}/b`, "https://h8.example/b"];
    visit(world, "h8.example", links);
    hear();
    expect(asked.at(-1)).to.equal(`h${CRAWL_HOSTS_MAX + 1}.example`);
    expect(wanted.get("h9.example")).to.equal(1);
    visit(world, "h9.example");
    hear();
    expect(wanted.has(late)).to.equal(false);
    visit(world, "h9.example");
    hear();
    expect([asked.at(-1), wanted.get(late)]).to.deep.equal([late, 2]);
    visit(world, "h10.example");
    hear();
    expect([asked.at(-1), wanted.get("h8.example")]).to.deep.equal(["h8.example", 1]);
    expect(world.state.hosts).to.deep.equal({ open: CRAWL_HOSTS_MAX });
    checkJob(world);
  });

  it("a job has as many open hosts as it was started with, and at least the one of its start", () => {
    for (const hostsMax of [1, 2]) {
      const { world, wanted, hear } = wide(10, hostsMax);
      const visited = new Set<string>();
      while (world.summary().status === "running") {
        expect(wanted.size).to.be.within(1, hostsMax);
        const [host = ""] = wanted.keys();
        visited.add(host);
        wanted.delete(host);
        visit(world, host);
        hear();
      }
      expect(visited.size).to.equal(10);
    }
  });

  it("a crawl of many more hosts visits each and ends", () => {
    const { world, wanted, asked, hear } = wide(3 * CRAWL_HOSTS_MAX + 1);
    while (world.summary().status === "running") {
      const [host] = wanted.keys();
      if (host === undefined) throw new Error("nothing is wanted, and it has not ended");
      wanted.delete(host);
      visit(world, host);
      hear();
      expect(wanted.size).to.be.at.most(CRAWL_HOSTS_MAX);
    }
    expect(world.summary()).to.include({ status: "completed", finished: 3 * CRAWL_HOSTS_MAX + 2 });
    expect(new Set(asked).size).to.equal(asked.length);
    checkJob(world);
  });

  it("a job stored before hosts were counted continues", () => {
    const { world, wanted, hear } = wide(CRAWL_HOSTS_MAX);
    const { hosts: _hosts, ...state } = world.state;
    world.state = state;
    for (const [name, row] of world.rows) {
      if (row.type !== "host") continue;
      const { open: _open, ...before } = row;
      world.rows.set(name, before);
    }
    const [first = ""] = wanted.keys();
    visit(
      world,
      first,
      Array.from({ length: CRAWL_HOSTS_MAX }, (_, n) => `https://i${n}.example/`),
    );
    wanted.delete(first);
    hear();
    for (let rounds = 0; world.summary().status === "running" && rounds < 1_000; rounds += 1) {
      const [host = ""] = wanted.keys();
      wanted.delete(host);
      visit(world, host);
      hear();
    }
    expect(world.summary().status).to.equal("completed");
    checkJob(world);
  });
});
