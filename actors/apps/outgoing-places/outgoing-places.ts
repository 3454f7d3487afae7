/**
 * Grants an account's queues of outgoing webhooks their places in the lane `post`, so that one account cannot fill the
 * lane. Queues that wait take turns.
 */
import { outgoingPlaces } from "../../../schemas/apps/outgoing-places.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { OutgoingPlacesState, WaitingQueueRow } from "./outgoing-places-state.ts";
import { PlacesDraft } from "./places-draft.ts";

/**
 * Stored at: account id
 *
 * State: `{ next, places: [{ queue, at }], expireAt? }`: the places that queues of outgoing webhooks have, 16 at most,
 * and since when; `next` numbers the turns
 *
 * Row `<turn>`: `{ queue, places }`: a queue that waits, and for how many places; 2,000 at most
 */
export const outgoingPlacesActor = defineActor(outgoingPlaces, {
  state: OutgoingPlacesState,
  rows: WaitingQueueRow,
  initial: { next: 1, places: [] },
  mayComeEarly: ["expire"],

  handlers: {
    wanted(state, { queue, places, returned }, context) {
      const draft = new PlacesDraft(state, context);
      draft.takeBack(queue, returned);
      draft.setWanted(queue, places);
      draft.grant();
      return draft.transition();
    },

    expire(state, _input, context) {
      const draft = new PlacesDraft(state, context);
      draft.expire();
      draft.grant();
      return draft.transition();
    },
  },
});
