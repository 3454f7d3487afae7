/** Runs a queue of outgoing webhooks in a test without a host, together with the places of its account. */
import assert from "node:assert/strict";
import type { outgoingPlaces } from "../../../../schemas/apps/outgoing-places.ts";
import type { outgoingWebhook } from "../../../../schemas/apps/outgoing-webhook.ts";
import type { Envelope, Input } from "../../../../schemas/contract.ts";
import { ActorInHand } from "../../../../scripts/testing/actor-in-hand.ts";
import { outgoingPlacesActor } from "../../outgoing-places/outgoing-places.ts";
import type {
  OutgoingPlacesState,
  WaitingQueueRow,
} from "../../outgoing-places/outgoing-places-state.ts";
import { outgoingWebhookActor } from "../outgoing-webhook.ts";
import type { OutgoingRow, OutgoingState } from "../outgoing-webhook-state.ts";

type Messages = (typeof outgoingWebhook)["messages"];
type PlacesMessages = (typeof outgoingPlaces)["messages"];
type Wanted = Input<PlacesMessages["wanted"]>;
export interface Post {
  number: number;
  attempt: number;
  id: string;
}

export const URL = "https://receiver.example/hook";

export const ACCOUNT = "a".repeat(32);
export const KEY = `${ACCOUNT}.b.C.d`;

/** A queue of webhooks. The places of its account are real, and other queues may share them. */
export class Queue extends ActorInHand<Messages, OutgoingState, OutgoingRow> {
  readonly places: Places;
  readonly #key: string;
  /** Whether messages to the places of the account are lost. */
  isCutOff = false;

  constructor(key = KEY, places = new Places()) {
    super(outgoingWebhookActor, key);
    this.#key = key;
    this.places = places;
    places.queues.set(key, this);
  }

  override ask<N extends keyof Messages & string>(message: N, input: Input<Messages[N]>) {
    const reply = super.ask(message, input);
    this.places.now = this.now;
    const isWanted = (sent: Envelope) => sent.kind === "outgoing-places";
    const wanted = this.sent.filter(isWanted);
    this.sent = this.sent.filter((sent) => !isWanted(sent));
    for (const sent of wanted) {
      assert.deepEqual([sent.key, sent.message], [ACCOUNT, "wanted"]);
      assert.equal((sent.input as Wanted).queue, this.#key);
      if (!this.isCutOff) this.places.ask("wanted", sent.input as Wanted);
    }
    this.places.deliver();
    return reply;
  }

  send(
    id: string,
    payload: Input<Messages["send"]>["payload"] = { text: "{}" },
    fields: Partial<Input<Messages["send"]>> = {},
  ) {
    const contentType = "application/json";
    return this.ask("send", { id, url: URL, payload, payloadBytes: 2, contentType, ...fields });
  }

  posts(): Post[] {
    const posts = this.sent.filter(({ message }) => message === "post");
    this.sent = this.sent.filter(({ message }) => message !== "post");
    return posts.map(({ input }) => input as Post);
  }

  tried({ number, attempt }: Post, status?: number, retryAfterMs?: number): void {
    const outcome = {
      at: this.now - 5,
      durationMs: 5,
      ...(status === undefined ? {} : { status }),
    };
    const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
    this.ask("tried", { number, attempt, outcome, ...asked });
  }

  /** Fires reminders until the next webhook is sent: a reminder may come before the attempt is due. */
  untilNextPost(): Post {
    for (;;) {
      const [post] = this.posts();
      if (post) return post;
      this.remind("resume");
    }
  }

  entry(number: number) {
    return this.ask("get", { number }).webhook;
  }
}

/** The places of the account. They grant places to the queues that were made with them. */
export class Places extends ActorInHand<PlacesMessages, OutgoingPlacesState, WaitingQueueRow> {
  readonly queues = new Map<string, Queue>();

  constructor() {
    super(outgoingPlacesActor, ACCOUNT);
  }

  deliver(): void {
    for (let sent = this.sent.shift(); sent; sent = this.sent.shift()) {
      this.queues.get(sent.key)?.ask("placesGranted", sent.input as { places: number });
    }
  }

  /** Grants places to a queue that is not part of the test. */
  want(places: number): void {
    this.ask("wanted", { queue: `${ACCOUNT}.b.C.absent`, places, returned: 0 });
    this.deliver();
  }

  /** The number of places that are granted and were not returned. */
  get granted(): number {
    return this.state.places.length;
  }
}
