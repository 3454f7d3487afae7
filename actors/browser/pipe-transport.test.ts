import { PassThrough } from "node:stream";
import { expect } from "chai";
import { PipeTransport } from "./pipe-transport.ts";

function open(messageBytesMax?: number) {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  const seen: string[] = [];
  const ended = () => seen.push("ended");
  const limit = messageBytesMax === undefined ? {} : { messageBytesMax };
  const transport = new PipeTransport({ toBrowser, fromBrowser, ended, ...limit });
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

  it("send() ends each message by a NUL", async () => {
    const { transport, toBrowser } = open();
    const written: Buffer[] = [];
    toBrowser.on("data", (chunk: Buffer) => written.push(chunk));
    transport.send("a");
    transport.send("b");
    await new Promise((resolve) => setImmediate(resolve));
    expect(String(Buffer.concat(written))).to.equal(["a", "b", ""].join("\0"));
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
