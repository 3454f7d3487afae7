import { expect } from "chai";
import { refusal } from "../../../../scripts/testing/refusal.ts";
import { type IdleProcess, ProcessPlaces, processesOfAccountMax } from "./process-places.ts";

const MAX = 8;
const SHARE = processesOfAccountMax(MAX);

describe("process places", () => {
  it("take() gives an account its share, and other accounts the rest", () => {
    const host = new Host();
    for (let index = 0; index < SHARE; index++) host.start(`a.${index}`);
    expect(SHARE).to.be.below(MAX);
    const refused = refusal(() => host.start("a.more"));
    expect(refused.code).to.equal("busy");
    expect(refused.message).to.include(`its host runs ${SHARE} of its account`);
    for (let index = SHARE; index < MAX; index++) host.start(`b.${index}`);
    expect(refusal(() => host.start("c.one")).message).to.include(`its host runs ${MAX} of them`);
    host.end("a.0");
    host.start("c.one");
  });

  it("take() lets an idle process give way, of the same account before the one that is idle longest", () => {
    const host = new Host();
    for (let index = 0; index < SHARE; index++) host.start(`a.${index}`);
    for (let index = SHARE; index < MAX; index++) host.start(`b.${index}`);
    host.idle.set("b.6", 1).set("a.0", 2).set("a.1", 3).set("a.2", undefined);
    host.start("a.new");
    expect(host.gaveWay).to.deep.equal(["a.0"]);
    host.start("c.new");
    host.start("c.other");
    expect(host.gaveWay).to.deep.equal(["a.0", "b.6", "a.1"]);
    host.start("c.third");
    expect(host.gaveWay).to.deep.equal(["a.0", "b.6", "a.1", "a.2"]);
    expect(refusal(() => host.start("c.fourth")).code).to.equal("busy");
  });

  it("take() ends no process of another account for one that has its share", () => {
    const host = new Host();
    for (let index = 0; index < SHARE; index++) host.start(`a.${index}`);
    host.start("b.one");
    host.idle.set("b.one", 1);
    expect(refusal(() => host.start("a.more")).code).to.equal("busy");
    expect(host.gaveWay).to.deep.equal([]);
  });
});

/** A host with processes that run and some that are idle. */
class Host {
  readonly idle = new Map<string, number | undefined>();
  readonly gaveWay: string[] = [];
  readonly #places = new ProcessPlaces(MAX);
  readonly #releases = new Map<string, () => void>();

  start(key: string): void {
    this.#releases.set(
      key,
      this.#places.take(key, () => this.#idle()),
    );
  }

  end(key: string): void {
    this.#releases.get(key)?.();
    this.idle.delete(key);
  }

  #idle(): IdleProcess[] {
    return [...this.idle].map(([key, idleSince]) => ({
      key,
      idleSince,
      giveWay: () => {
        this.gaveWay.push(key);
        this.end(key);
      },
    }));
  }
}
