import { expect } from "chai";
import { fetched, HOST, JobWorld, START } from "../../../scripts/testing/job-world.ts";
import { PAGES_PER_ROW } from "./state/page-rows.ts";

/** A map of rows that counts its reads. Its iterators throw unless `walkable` is true. */
class CountedRows<V> extends Map<string, V> {
  looks = 0;
  walkable = false;

  override get(row: string): V | undefined {
    this.looks += 1;
    return super.get(row);
  }

  override has(row: string): boolean {
    this.looks += 1;
    return super.has(row);
  }

  override [Symbol.iterator](): MapIterator<[string, V]> {
    if (!this.walkable) throw new Error("A handler walks through all rows");
    return super[Symbol.iterator]();
  }

  override entries = () => this[Symbol.iterator]();
  override keys(): MapIterator<string> {
    throw new Error("A handler walks through all rows");
  }
  override values(): MapIterator<V> {
    throw new Error("A handler walks through all rows");
  }
  override forEach(): void {
    throw new Error("A handler walks through all rows");
  }
}

interface Cost {
  looks: number;
  rows: number;
  bytes: number;
}

describe("costs of a crawl job", () => {
  const small = new JobWorld();
  const large = new JobWorld();

  before(function () {
    this.timeout(120_000);
    fill(small, 1_000);
    fill(large, 100_000);
  });

  it("adding links costs the same at 1,000 and at 100,000 pages", () => {
    const report = (world: JobWorld) => {
      const turn = world.grant(1);
      const links = numbered(20, `${START}new-`);
      const [request] = turn.requests;
      if (request?.type !== "page") throw new Error("There is a page");
      return costOf(world, () => world.report(turn, fetched(links)(request.index)));
    };
    const [one, many] = [report(small), report(large)];
    expect(many.rows).to.be.within(one.rows - 3, one.rows + 3);
    expect(many.looks).to.be.within(one.looks - 10, one.looks + 10);
    // At 1,000 pages of this limit, most rows of known addresses are still empty.
    expect(many.bytes).to.be.below(4 * one.bytes);
  });

  it("a turn costs the same at 1,000 and at 100,000 pages", () => {
    const turn = (world: JobWorld) => {
      const granted = world.grant(8);
      return costOf(world, () => world.run("turnEnded", { host: HOST, turn: granted.turn }));
    };
    const [one, many] = [turn(small), turn(large)];
    expect(many.rows).to.equal(one.rows);
    expect(many.looks).to.equal(one.looks);
  });

  it("list() reads only the rows it shows, at every position and with every filter", () => {
    const after = String(90_000);
    for (const query of [
      { count: 1 },
      { count: 1, cursor: after },
      { count: 1, status: "completed" as const },
      { count: 1, status: "skipped" as const },
      { count: 1, status: "queued" as const, cursor: after },
    ]) {
      const { looks } = costOf(large, () => large.list(query));
      expect(looks, JSON.stringify(query)).to.be.below(60);
    }
  });

  it("cancel() rewrites no pages, and they read as cancelled", () => {
    const { rows, looks } = costOf(large, () =>
      large.run("cancel", { account: large.state.account }),
    );
    expect(rows).to.be.below(3);
    expect(looks).to.be.below(20);
    const { entries, more } = large.list({
      status: "cancelled",
      count: 2,
      cursor: "99990.0.999999",
    });
    expect([entries.length, more]).to.deep.equal([2, true]);
    expect(large.summary()).to.deep.include({ status: "cancelled_by_user", total: 100_000 });
  });
});

const numbered = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, number) => `${prefix}${number}`);

/**
 * Starts a job and fills it almost to `pages` pages. The pages that this function visits are settled; all others stay
 * queued.
 */
function fill(world: JobWorld, pages: number): void {
  world.start({ source: "links", limit: 100_000 }).learn();
  world.visit(fetched(numbered(10, START)));
  // Later turns have no page of the first row, which each message reads. A row that a message has written counts no
  // look.
  for (let page = 1; page < PAGES_PER_ROW; page += 1) world.visit(fetched());
  const room = pages - 100;
  for (let added = 11, part = 0; added < room; part += 1) {
    const links = Math.min(10_000, room - added);
    world.visit(fetched(numbered(links, `${START}${part}/`)));
    world.settleBacklog();
    added += links;
  }
  // The job of 100,000 pages is at its page limit. It gets 80 of the last 100 pages; the first test adds the other
  // 20.
  if (pages === 100_000) world.visit(fetched(numbered(80, `${START}rest/`)));
  world.rows = new CountedRows(world.rows);
}

function costOf(world: JobWorld, message: () => unknown): Cost {
  const rows = world.rows as CountedRows<unknown>;
  rows.looks = 0;
  world.rowsWritten = [];
  message();
  const { looks } = rows;
  const written = world.rowsWritten.map((row) => JSON.stringify(rows.get(row) ?? null).length);
  return { looks, rows: written.length, bytes: written.reduce((sum, size) => sum + size, 0) };
}
