import { expect } from "chai";
import { OUTGOING_PLACES_MAX } from "../../../schemas/apps/limits.ts";
import type { outgoingPlaces } from "../../../schemas/apps/outgoing-places.ts";
import { ActorInHand } from "../../../scripts/testing/actor-in-hand.ts";
import { outgoingPlacesActor } from "./outgoing-places.ts";
import type { OutgoingPlacesState, WaitingQueueRow } from "./outgoing-places-state.ts";
import { OUTGOING_PLACE_MS_MAX, OUTGOING_QUEUES_MAX } from "./places-draft.ts";

const ACCOUNT = "a".repeat(32);

class Places extends ActorInHand<
  (typeof outgoingPlaces)["messages"],
  OutgoingPlacesState,
  WaitingQueueRow
> {
  constructor() {
    super(outgoingPlacesActor, ACCOUNT);
  }

  want(queue: string, places: number, returned = 0): void {
    this.ask("wanted", { queue, places, returned });
  }

  /** Returns the grants since the last call, such as "a 2". */
  granted(): string[] {
    const sent = this.sent.map(({ kind, key, message, input }) => {
      expect([kind, message]).to.deep.equal(["outgoing-webhook", "placesGranted"]);
      return `${key} ${(input as { places: number }).places}`;
    });
    this.sent = [];
    return sent;
  }

  get waiting(): string[] {
    const rows = [...this.rows].sort(([one], [other]) => Number(one) - Number(other));
    return rows.map(([, { queue, places }]) => `${queue} ${places}`);
  }
}

describe("outgoing-places", () => {
  let places: Places;
  beforeEach(() => {
    places = new Places();
  });

  it("wanted() grants OUTGOING_PLACES_MAX places at once, and one more when one is returned", () => {
    places.want("a", OUTGOING_PLACES_MAX - 1);
    places.want("b", 2);
    expect(places.granted()).to.deep.equal([`a ${OUTGOING_PLACES_MAX - 1}`, "b 1"]);
    expect(places.waiting).to.deep.equal(["b 1"]);
    places.want("a", 0, 1);
    expect(places.granted()).to.deep.equal(["b 1"]);
    expect(places.waiting).to.deep.equal([]);
    expect(places.state.places).to.have.length(OUTGOING_PLACES_MAX);
  });

  it("wanted() lets the queues that wait take turns, one place a turn", () => {
    places.want("a", OUTGOING_PLACES_MAX);
    places.granted();
    places.want("b", 3);
    places.want("c", 1);
    places.want("d", 2);
    const served: string[] = [];
    for (let i = 0; i < 6; i++) {
      places.want("a", 1, 1);
      served.push(...places.granted());
    }
    expect(served).to.deep.equal(["b 1", "c 1", "d 1", "a 1", "b 1", "d 1"]);
    // `a` wants one place, not one for each message.
    expect(places.waiting).to.deep.equal(["a 1", "b 1"]);
  });

  it("wanted() again keeps the turn of a queue that waits, changes its number, and ends its wait", () => {
    places.want("a", OUTGOING_PLACES_MAX);
    for (const queue of ["b", "c", "b"]) places.want(queue, 1);
    places.want("c", 4);
    expect(places.waiting).to.deep.equal(["b 1", "c 4"]);
    places.want("b", 0);
    expect(places.waiting).to.deep.equal(["c 4"]);
    places.granted();
    places.want("a", 0, OUTGOING_PLACES_MAX);
    expect(places.granted()).to.deep.equal(["c 4"]);
    expect(places.rows.size).to.equal(0);
  });

  it("wanted() takes OUTGOING_QUEUES_MAX queues, and one more when one has been served", () => {
    places.want("first", OUTGOING_PLACES_MAX);
    for (let i = 0; i < OUTGOING_QUEUES_MAX; i++) places.want(`queue ${i}`, 1);
    expect(places.rows.size).to.equal(OUTGOING_QUEUES_MAX);
    places.want("more", 1);
    expect(places.rows.size).to.equal(OUTGOING_QUEUES_MAX);
    expect(places.waiting).to.not.include("more 1");
    // A queue that waits may still change its number.
    places.want("queue 7", 2);
    expect(places.waiting).to.include("queue 7 2");
    places.granted();
    places.want("first", 0, 1);
    expect(places.granted()).to.deep.equal(["queue 0 1"]);
    places.want("more", 1);
    expect(places.waiting.at(-1)).to.equal("more 1");
  });

  it("wanted() ignores the return of places that the queue does not have", () => {
    places.want("a", OUTGOING_PLACES_MAX);
    places.want("b", 1, 5);
    places.want("b", 1, 5);
    expect(places.granted()).to.deep.equal([`a ${OUTGOING_PLACES_MAX}`]);
    expect(places.state.places).to.have.length(OUTGOING_PLACES_MAX);
  });

  it("expire() frees places that were not returned in time, for queues that wait", () => {
    places.want("lost", 1);
    places.now += 1_000;
    places.want("a", OUTGOING_PLACES_MAX - 1);
    expect([...places.reminders]).to.deep.equal([]);
    places.want("b", 2);
    places.granted();
    const start = places.now;
    places.remind("expire");
    expect(places.now - start).to.equal(OUTGOING_PLACE_MS_MAX - 1_000);
    expect(places.granted()).to.deep.equal(["b 1"]);
    // The return comes too late.
    places.want("lost", 0, 1);
    expect(places.granted()).to.deep.equal([]);
    places.remind("expire");
    expect(places.now - start).to.equal(OUTGOING_PLACE_MS_MAX);
    expect(places.granted()).to.deep.equal(["b 1"]);
    expect([...places.reminders]).to.deep.equal([]);
  });

  it("expire() waits no longer for lost places although the clock was set back by hours", () => {
    places.want("lost", OUTGOING_PLACES_MAX);
    places.want("a", 1);
    places.granted();
    places.setClock(-3 * 3_600_000);
    const start = places.now;
    places.remind("expire");
    expect(places.now - start).to.equal(OUTGOING_PLACE_MS_MAX);
    expect(places.granted()).to.deep.equal(["a 1"]);
  });

  it("wanted() sets the reminder again if a host of an older version has lost it", () => {
    places.want("lost", OUTGOING_PLACES_MAX);
    places.want("a", 1);
    places.granted();
    places.reminders.clear();
    places.now += OUTGOING_PLACE_MS_MAX;
    places.want("a", 1);
    places.remind("expire");
    expect(places.granted()).to.deep.equal(["a 1"]);
  });
});
