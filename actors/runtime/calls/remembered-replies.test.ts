import { expect } from "chai";
import { REPLIES_KEPT_MS } from "../../../schemas/limits.ts";
import {
  CLIENT_BYTES_MAX,
  REPLIES_BYTES_MAX,
  REPLIES_PER_CLIENT_MAX,
  RememberedReplies,
  StoredReplies,
} from "./remembered-replies.ts";

const NOW = 1_800_000_000_000;
const id = (number: number, settled = 1, client = "c") => ({ client, number, settled });

/** JSON text of this many bytes. */
const textOf = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));

function stored(replies: RememberedReplies): RememberedReplies {
  return new RememberedReplies(StoredReplies.parse(JSON.parse(replies.toText())));
}

describe("RememberedReplies", () => {
  it("find() returns a reply by client and number, before and after it is stored", () => {
    const replies = new RememberedReplies();
    replies.remember(id(1), '{"count":1}', NOW);
    replies.remember(id(2), "null", NOW);
    for (const known of [replies, stored(replies), stored(stored(replies))]) {
      expect(known.find(id(1))).to.deep.equal({ reply: '{"count":1}' });
      expect(known.find(id(2))).to.deep.equal({ reply: "null" });
      expect(known.find(id(3))).to.equal(undefined);
      expect(known.find(id(1, 1, "other"))).to.equal(undefined);
    }
  });

  it("find() treats calls below the client's settled number as settled, with or without a reply", () => {
    const replies = new RememberedReplies();
    replies.remember(id(1), "1", NOW);
    replies.remember(id(5, 4), "5", NOW);
    for (const known of [replies, stored(replies)]) {
      expect(known.find(id(1))).to.equal("settled");
      expect(known.find(id(3))).to.equal("settled");
      expect(known.find(id(4))).to.equal(undefined);
    }
  });

  it("remember() forgets settled replies, also those out of order", () => {
    const replies = new RememberedReplies();
    for (const number of [3, 1, 2, 5, 4]) replies.remember(id(number), `"${number}"`, NOW);
    replies.remember(id(6, 6), '"6"', NOW);
    expect(Object.keys(JSON.parse(replies.toText()).c.replies)).to.deep.equal(["6"]);
  });

  it("remember() never decreases the settled number", () => {
    const replies = new RememberedReplies();
    replies.remember(id(5, 5), "5", NOW);
    replies.remember(id(6, 2), "6", NOW);
    expect(replies.find(id(4))).to.equal("settled");
  });

  it("isFull() is true at REPLIES_PER_CLIENT_MAX unsettled replies, for that client alone", () => {
    const replies = new RememberedReplies();
    for (let number = 1; number < REPLIES_PER_CLIENT_MAX; number++) {
      replies.remember(id(number), "0", NOW);
    }
    expect(replies.isFull(id(REPLIES_PER_CLIENT_MAX), NOW)).to.equal(false);
    replies.remember(id(REPLIES_PER_CLIENT_MAX), "0", NOW);
    expect(replies.isFull(id(REPLIES_PER_CLIENT_MAX + 1), NOW)).to.equal(true);
    expect(replies.isFull(id(1, 1, "other"), NOW)).to.equal(false);
    // The call itself may report that earlier calls of its client are settled.
    expect(replies.isFull(id(REPLIES_PER_CLIENT_MAX + 1, 2), NOW)).to.equal(false);
  });

  it("isFull() is true at CLIENT_BYTES_MAX bytes of unsettled replies, for that client alone", () => {
    const replies = new RememberedReplies();
    replies.remember(id(1), textOf(CLIENT_BYTES_MAX - 1), NOW);
    expect(stored(replies).isFull(id(2), NOW)).to.equal(false);
    replies.remember(id(2), "1", NOW);
    for (const known of [replies, stored(replies)]) {
      expect(known.isFull(id(3), NOW)).to.equal(true);
      expect(known.isFull(id(1, 1, "other"), NOW)).to.equal(false);
      expect(known.isFull(id(3, 2), NOW)).to.equal(false);
    }
  });

  it("isFull() is true for all at REPLIES_BYTES_MAX bytes, until their clients were silent for REPLIES_KEPT_MS", () => {
    const replies = new RememberedReplies();
    replies.remember(id(1), textOf(CLIENT_BYTES_MAX), NOW);
    replies.remember(id(1, 1, "second"), textOf(REPLIES_BYTES_MAX - CLIENT_BYTES_MAX - 1), NOW + 1);
    const third = id(1, 1, "third");
    expect(replies.isFull(third, NOW + 1)).to.equal(false);
    replies.remember(third, "1", NOW + 1);
    for (const known of [replies, stored(replies)]) {
      expect(known.isFull(id(1, 1, "fourth"), NOW + REPLIES_KEPT_MS)).to.equal(true);
      expect(known.isFull(id(1, 1, "fourth"), NOW + 1 + REPLIES_KEPT_MS)).to.equal(false);
      expect(known.find(id(1))).to.equal(undefined);
      expect(known.find(third)).to.deep.equal({ reply: "1" });
    }
  });

  it("remember() forgets a client that was silent for longer than REPLIES_KEPT_MS", () => {
    const replies = new RememberedReplies();
    replies.remember(id(1), "1", NOW);
    replies.remember(id(1, 1, "second"), "1", NOW + REPLIES_KEPT_MS);
    expect(replies.find(id(1))).to.deep.equal({ reply: "1" });
    replies.remember(id(1, 1, "third"), "1", NOW + REPLIES_KEPT_MS + 1);
    expect(replies.find(id(1))).to.equal(undefined);
    expect(replies.find(id(1, 1, "second"))).to.deep.equal({ reply: "1" });
  });

  it("toText() is JSON for any client name", () => {
    const replies = new RememberedReplies();
    for (const client of ['"', "\\", "\n", "constructor", "a b"]) {
      replies.remember(id(1, 1, client), '{"x":"\\""}', NOW);
    }
    for (const client of ['"', "\\", "\n", "constructor", "a b"]) {
      expect(stored(replies).find(id(1, 1, client))).to.deep.equal({ reply: '{"x":"\\""}' });
    }
  });

  it("rememberEffectless() gives another copy the same answer while in memory, and stores nothing", () => {
    const replies = new RememberedReplies();
    replies.rememberEffectless(id(1), { reply: "1" });
    expect(replies.find(id(1))).to.deep.equal({ reply: "1" });
    expect(replies.toText()).to.equal("{}");
    replies.rememberEffectless(id(3, 3), { reply: "3" });
    expect(replies.find(id(1))).to.equal("settled");
    expect(replies.find(id(2))).to.equal("settled");
    expect(replies.find(id(3, 3))).to.deep.equal({ reply: "3" });
  });

  it("rememberEffectless() keeps REPLIES_PER_CLIENT_MAX replies of a client, and not one more", () => {
    const replies = new RememberedReplies();
    for (let number = 1; number <= REPLIES_PER_CLIENT_MAX + 1; number++) {
      replies.rememberEffectless(id(number), { reply: "0" });
    }
    expect(replies.find(id(REPLIES_PER_CLIENT_MAX))).to.deep.equal({ reply: "0" });
    expect(replies.find(id(REPLIES_PER_CLIENT_MAX + 1))).to.equal(undefined);
  });
});
