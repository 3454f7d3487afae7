import { PassThrough } from "node:stream";
import { expect } from "chai";
import { until } from "../../../../scripts/testing/until.ts";
import { CDP_MESSAGES_AT_ONCE, PipeTransport } from "./pipe-transport.ts";

function open(messageBytesMax?: number, admits = (_: Buffer) => true) {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  const seen: string[] = [];
  const ended = () => seen.push("ended");
  const limit = messageBytesMax === undefined ? {} : { messageBytesMax };
  const transport = new PipeTransport({ toBrowser, fromBrowser, ended, admits, ...limit });
  transport.onmessage = (message) => seen.push(message);
  transport.onclose = () => seen.push("closed");
  const receive = async (text: string, size = text.length) => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size)
      fromBrowser.write(bytes.subarray(at, at + size));
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { transport, toBrowser, fromBrowser, seen, receive };
}

describe("PipeTransport", () => {
  it("onmessage() gets whole messages, wherever pieces end", async () => {
    for (let size = 1; size < 12; size++) {
      const { seen, receive } = open();
      await receive("first\0sécond\0\0third", size);
      await receive("\0");
      expect(seen).to.deep.equal(["first", "sécond", "third"]);
    }
  });

  it("onmessage() gets a message as long as allowed, and skips a longer one alone", async () => {
    const { seen, receive } = open(5);
    await receive(["12345", "123456", "next", ""].join("\0"), 4);
    expect(seen).to.deep.equal(["12345", "next"]);
  });

  it("onmessage() gets a refusal in place of an answer that is too long, with its id", async () => {
    for (const size of [1, 7, 100]) {
      const { seen, receive } = open(20);
      await receive('{"id":12,"result":{"data":"long"}}\0{"method":"a-long-event"}\0next\0', size);
      const error = { code: -32_000, message: "its answer is larger than 20 bytes" };
      expect(seen).to.deep.equal([JSON.stringify({ id: 12, error }), "next"]);
    }
  });

  it("send() ends each message by a NUL", async () => {
    const { transport, toBrowser } = open();
    const written: Buffer[] = [];
    toBrowser.on("data", (chunk: Buffer) => written.push(chunk));
    transport.send("a");
    transport.send("b");
    await new Promise((resolve) => setImmediate(resolve));
    expect(String(Buffer.concat(written))).to.equal(["a", "b", ""].join("\0"));
  });

  it("onmessage() gets only what is admitted", async () => {
    const { transport, seen, receive } = open(undefined, (message) => message.includes("wanted"));
    await receive(["a wanted one", "another", "wanted too", ""].join("\0"));
    expect(seen).to.deep.equal(["a wanted one", "wanted too"]);
    transport.close();
  });

  it("onmessage() lets others have their turn between many messages", async () => {
    const { fromBrowser, seen } = open();
    const some = "event\0".repeat(CDP_MESSAGES_AT_ONCE);
    for (let i = 0; i < 10; i++) fromBrowser.write(some);
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen.length).to.be.within(1, 3 * CDP_MESSAGES_AT_ONCE);
    await until("all are read", () => seen.length === 10 * CDP_MESSAGES_AT_ONCE);
  });

  it("send() answers itself what would only turn on events that nobody reads", async () => {
    const { transport, toBrowser, seen } = open();
    transport.send('{"method":"Log.enable","id":1,"sessionId":"a"}');
    transport.send('{"method":"Network.enable","id":2}');
    await until("it is answered", () => seen.length > 0);
    toBrowser.end();
    const written = Buffer.concat(await toBrowser.toArray());
    expect(String(written)).to.equal('{"method":"Network.enable","id":2}\0');
    expect(seen.slice(0, 1)).to.deep.equal(['{"id":1,"result":{},"sessionId":"a"}']);
  });

  it("close() tells its owner before puppeteer, once, and when a pipe ends too", async () => {
    const { transport, fromBrowser, seen } = open();
    const gone = new Promise((resolve) => fromBrowser.once("close", resolve));
    fromBrowser.destroy(new Error("cut"));
    await gone;
    transport.close();
    transport.send("too late");
    expect(seen).to.deep.equal(["ended", "closed"]);
  });
});
